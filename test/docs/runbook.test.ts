import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { typesListing } from '../../src/ledger/rules/event.ts';
import { callsIn, logCalls } from '../support/log-calls.ts';
import { readPage, root } from '../support/pages.ts';

const { text } = readPage('docs/operations/runbook.md');
const [, ownAlerts = ''] = /\n## Alerts of the gateway\n([^]*?)\n## /.exec(text) ?? [];
const [, logLines = ''] = text.split('\n## Log lines\n');
/** Each row of a table, or item of a list, that begins with a message. */
const entriesIn = (section: string) =>
  [...section.matchAll(/^(?:\| `([^`]+)` \|(.*)\||- `([^`]+)`:(.*))$/gm)].map(
    ([, inRow, cells, inItem, rest]) => ({
      message: inRow ?? inItem ?? '',
      cells: (cells ?? rest ?? '').split(' | '),
    }),
  );
const entries = entriesIn(logLines).map(({ message }) => message);
const calls = logCalls();

test('every log line of level warn or above has a message that is one text', () => {
  expect(calls.filter(({ message }) => message === undefined).map(({ at }) => at)).toEqual([]);
});

test('the runbook has one entry for each log line of level warn or above, and no other', () => {
  expect(calls.length).toBeGreaterThan(80);
  const messages = new Set(calls.map(({ message }) => message ?? ''));
  expect(entries.filter((entry, at) => entries.indexOf(entry) !== at)).toEqual([]);
  expect([...messages].filter((message) => !entries.includes(message)).toSorted()).toEqual([]);
  expect(entries.filter((entry) => !messages.has(entry)).toSorted()).toEqual([]);
});

const wrongIn = (section: string, count: number) =>
  entriesIn(section).filter(
    ({ cells }) => cells.length !== count || cells.some((cell) => cell.trim() === ''),
  );

test('an entry says what the line means, whether money is at risk, and what to do, by itself or with all of its section', () => {
  const [, database = '', harmless = '', others = '', ...more] = logLines.split(/^### /m);
  expect(more).toEqual([]);
  expect(database).toMatch(/no money is at risk[^|]*Look at the database if the line repeats/);
  expect(harmless).toContain('no money is at risk');
  expect([database, harmless, others].flatMap(entriesIn)).toHaveLength(entries.length);
  expect(wrongIn(database, 1)).toEqual([]);
  expect(wrongIn(harmless, 2)).toEqual([]);
  expect(wrongIn(others, 3)).toEqual([]);
});

test('the runbook has one entry for each kind of alert that the gateway sends', () => {
  const source = readFileSync(path.join(root, 'src/base/values/alert-condition.ts'), 'utf8');
  const [, union = ''] = /type AlertKind =([^;]*);/.exec(source) ?? [];
  const conditions = [...union.matchAll(/'(\w+)'/g)].map(([, kind = '']) => kind);
  // the last two are alerts without their own event
  const events = [...typesListing('followUps', 'alert'), 'unreadable_event', 'ledger_inconsistent'];
  const kinds = [...ownAlerts.matchAll(/^- `(\w+)`: \S/gm)].map(([, kind = '']) => kind);
  expect(kinds.toSorted()).toEqual([...conditions, ...events].toSorted());
});

test('a line is found in every form in which the source logs it', () => {
  const source = `
    log.warn({ a: f(1, ','), b: "x" }, 'one, two');
    request.log.error({ err }, isLate ? 'late' : 'early');
    const message = "it's three";
    context.log.error({ err }, message);
    logger.warn('four');
    inBackground(context, send(a, b), 'five', { a });
    startLoop(step, { pollMs, log, failureMessage: 'six' });
    log.info({}, 'nothing');
    log.error({ err }, \`seven \${of}\`);`;
  expect(callsIn('a.ts', source).map(({ message }) => message)).toEqual([
    'six',
    'five',
    'one, two',
    undefined,
    "it's three",
    'four',
    undefined,
  ]);
});
