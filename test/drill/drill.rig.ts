import { expect, test } from 'vitest';
import { isInstalled, notChecked } from '../support/installed.ts';
import { runDrill, uncovered } from './drill.ts';
import { alertsOf, scaleRules, shippedRules } from './rules.ts';

const absence = notChecked('THE ALERT DRILL', isInstalled('prometheus') ? [] : ['prometheus']);

const withoutNumbers = (rules: string): string => rules.replaceAll(/\b\d+[ms]?\b/g, 'N');

test('the drill has a fault for each alert of the rules, and for no other', () => {
  expect(uncovered(shippedRules)).toEqual([]);
  expect(uncovered(`${shippedRules}      - alert: TollbookOther\n`)).toEqual(['TollbookOther has no fault']);
  expect(uncovered(shippedRules.replace('alert: TollbookDown', 'alert: Down'))).toEqual([
    'Down has no fault',
    'TollbookDown is not an alert of the rules',
  ]);
});

test('the rules of the drill differ from the shipped ones only in their times', () => {
  const scaled = scaleRules(shippedRules);
  expect(alertsOf(scaled)).toEqual(alertsOf(shippedRules));
  expect(withoutNumbers(scaled)).toBe(withoutNumbers(shippedRules));
  const changed = shippedRules.split('\n').flatMap((line, index) => {
    const other = scaled.split('\n')[index] ?? '';
    return line === other ? [] : `${line.trim()} → ${other.trim()}`;
  });
  expect(changed).toContain('for: 5m → for: 5s');
  expect(changed).toContain(
    'expr: max(tollbook_settlement_oldest_open_seconds) > 900 → expr: max(tollbook_settlement_oldest_open_seconds) > 15',
  );
  // no time that somebody waits: seconds of a clock, of an append, of a blocked process, and counts
  for (const same of ['clock_offset', 'eventloop', 'gas_affordable', 'connections_awaited'])
    expect(changed.filter((line) => line.includes(same))).toEqual([]);
});

test.skipIf(absence !== '')(
  `a real Prometheus scrapes two gateways, and fires and resolves the alerts of a killed gateway and of one whose clock is wrong${absence}`,
  async () => {
    const lines: string[] = [];
    const only = ['TollbookDown', 'TollbookClockOff'];
    const { proven, failures } = await runDrill({ only, say: (line) => lines.push(line) });
    expect(failures.length === 0 ? [] : [...lines, ...failures]).toEqual([]);
    expect(proven).toEqual(only);
  },
);
