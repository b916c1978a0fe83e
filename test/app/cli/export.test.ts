import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { exportTo } from '../../support/log.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { allEvents } from '../../support/invariants.ts';
import { absence, complaintsOf, isAbsent } from '../../support/journal-tools.ts';
import { payByOption, withEuroByPermit2 } from '../../support/permit2.ts';
import { temporaryFolder, tollbook } from '../../support/program.ts';
import { startTestRunner } from '../../support/runner.ts';
import { eventually } from '../../support/wait.ts';
import { exportFile, readCsv, twoMonths } from '../../finance/use-cases/books/support.ts';

const chain = useChain();

/** A gateway's own ledger: two payments of two tokens delivered, one of them by Permit2, one that the runner refused for good. */
async function paidLedger(): Promise<TestDatabase> {
  const database = await createDatabase();
  const runner = await startTestRunner(({ body }) => ({ status: body.toString() === 'bad' ? 400 : 200 }));
  const byPermit2 = await withEuroByPermit2(chain);
  const gateway = await startTestGateway({ database, chain, runnerUrl: runner.url, ...byPermit2 });
  const job = '/x402/jobs/1/0';
  for (const [body, option] of [
    ['a', 0],
    ['b', 1],
    ['bad', 0],
  ] as const)
    expect((await payByOption(gateway, job, body, option)).status).toBe(202);
  await eventually(async () => {
    const types = (await allEvents(database.db)).map(({ type }) => type);
    expect(types.filter((type) => type === 'completed' || type === 'dead_lettered')).toHaveLength(3);
  });
  return database;
}

/** A period that ends right behind the last event, once that is past. */
async function untilNow({ db, pool }: TestDatabase): Promise<string[]> {
  const events = await allEvents(db);
  const to = new Date(Date.parse(events.at(-1)?.at ?? '') + 1).toISOString();
  await eventually(async () => {
    const { rows } = await pool.query('select tollbook.clock() > $1::timestamptz as has_passed', [to]);
    expect(rows).toEqual([{ has_passed: true }]);
  });
  return ['--from', events[0]?.at.slice(0, 10) ?? '', '--to', to];
}

describe("the books of a gateway's ledger", () => {
  test('are the same from the database and from its export, and contain every payment', async () => {
    const database = await paidLedger();
    const dir = temporaryFolder();
    const [file, out] = [path.join(dir, 'ledger.jsonl'), path.join(dir, 'books.csv')];
    const period = await untilNow(database);
    await exportTo(file, database);
    const args = ['export', '--format', 'csv', ...period];
    const inside = await tollbook(args, { DATABASE_URL: database.url });
    const exportedAt = new Date().toISOString();
    const outside = await tollbook([...args, '--input', file, '--exported-at', exportedAt, '--out', out]);
    expect([inside.code, outside.code, inside.stderr, outside.stderr]).toEqual([0, 0, '', '']);
    expect(readFileSync(out, 'utf8')).toBe(inside.stdout);
    const rows = readCsv(inside.stdout);
    const records = rows.map(({ category, amount, token }) => `${category} ${amount} ${token}`);
    expect(records.toSorted()).toEqual([
      'dead_letter 3.264000 USDC',
      'delivery 3.264000 EURC',
      'delivery 3.264000 USDC',
      'payment 3.264000 EURC',
      'payment 3.264000 USDC',
      'payment 3.264000 USDC',
    ]);
  });

  for (const tool of ['beancount', 'hledger'] as const)
    test.skipIf(isAbsent(tool))(`are accepted by ${tool}${absence(tool)}`, async () => {
      const database = await paidLedger();
      const out = path.join(temporaryFolder(), 'books');
      const args = ['export', '--format', tool, ...(await untilNow(database)), '--out', out];
      expect(await tollbook(args, { DATABASE_URL: database.url })).toMatchObject({ code: 0, stderr: '' });
      expect(readFileSync(out, 'utf8')).toContain('Liabilities:RefundsDue');
      expect(await complaintsOf(tool, out)).toBe('');
    });

  test('are refused for a period that has not ended by the clock of the database', async () => {
    const database = await createDatabase();
    const args = ['export', '--format', 'csv', '--from', '2026-01', '--to', '2999-01'];
    const ended = await tollbook(args, { DATABASE_URL: database.url });
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringMatching(/not over: it ends at 2999/) });
  });
});

describe('books are refused, with the reason, for', () => {
  const books = ['--format', 'csv'];
  const month = ['--from', '2026-01', '--to', '2026-02'];

  test.each([
    ['an unknown format', ['--format', 'xlsx'], /unknown format: --format is jsonl, csv, parquet/],
    ['half a period', [...books, '--from', '2026-01'], /--to is missing/],
    ['a reversed period', [...books, '--from', '2026-02', '--to', '2026-01'], /reversed/],
    ['an empty period', [...books, '--from', '2026-01', '--to', '2026-01'], /empty.*--to 2026-02/],
    ['an invalid date', [...books, '--from', 'may', '--to', '2026-02'], /"may" is not a date/],
    ['a position in the ledger', [...books, ...month, '--from-seq', '3'], /--from-seq is for --format jsonl/],
    ['a period with the format jsonl', month, /--from is for the books of a period/],
    [
      'an export time in the future',
      [...books, ...month, '--input', '/dev/null', '--exported-at', '2999-01-01'],
      /--exported-at is when .* has passed/,
    ],
    [
      'a summary that continues another',
      [...books, ...month, '--no-opening'],
      /--no-opening is for journals/,
    ],
    [
      'rates of a journal that continues another',
      ['--format', 'hledger', ...month, '--no-opening', '--rates', '/dev/null'],
      /--rates closes the conversions of a whole period/,
    ],
    [
      'a journal that begins before its year',
      ['--format', 'hledger', ...month, '--no-opening', '--year-from', '2026-04', '--input', '/dev/null'],
      /--year-from is when the first journal begins/,
    ],
    ['a time zone that does not exist', [...books, ...month, '--tz', 'Mars'], /there is no zone Mars/],
    ['a missing file', [...books, ...month, '--input', '/nowhere'], /\/nowhere cannot be read/],
  ])('%s', async (_, args, words) => {
    expect(await tollbook(['export', ...args])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(words),
    });
  });

  test('a future period', async () => {
    const input = exportFile(twoMonths().first);
    const args = ['--format', 'csv', '--from', '2998-01', '--to', '2999-01', '--input', input];
    const ended = await tollbook(['export', ...args]);
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringMatching(/in the future/) });
  });

  test('an export that ends before the period, and no file is written', async () => {
    const input = exportFile(twoMonths().first);
    const out = path.join(temporaryFolder(), 'books.csv');
    const ended = await tollbook(['export', ...books, ...month, '--input', input, '--out', out]);
    expect(ended).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/may have been exported before the period ended/),
    });
    expect([existsSync(out), existsSync(`${out}.partial`)]).toEqual([false, false]);
  });
});
