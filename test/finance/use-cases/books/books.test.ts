import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import { csvField } from '../../../../src/base/values/csv-line.ts';
import { bookFormats } from '../../../../src/base/values/format.ts';
import { temporaryFolder } from '../../../support/program.ts';
import {
  absence,
  complaintsOf,
  hledgerBalances,
  isAbsent,
  type JournalTool,
} from '../../../support/journal-tools.ts';
import {
  booksFrom,
  exportFile,
  february,
  january,
  leafOf,
  periodOf,
  readCsv,
  trailerOf,
  twoMonths,
} from './support.ts';

const wholeLedger = () => exportFile(twoMonths().both);

async function journalFile(tool: JournalTool, ledger: string, period = january): Promise<string> {
  const file = path.join(temporaryFolder(), `books.${tool}`);
  writeFileSync(file, await booksFrom(ledger, period, tool));
  return file;
}

describe.each(bookFormats)('as %s', (format) => {
  test('two exports of a period are the same bytes', async () => {
    const file = wholeLedger();
    expect(await booksFrom(file, february, format)).toEqual(await booksFrom(file, february, format));
  });

  test('a period that is over does not change, whatever comes late', async () => {
    const then = await booksFrom(exportFile(twoMonths().first), january, format);
    expect(await booksFrom(wholeLedger(), january, format)).toEqual(then);
  });
});

describe.each(['beancount', 'hledger'] as const)('a journal for %s', (tool) => {
  test.skipIf(isAbsent(tool))(
    `${tool} accepts both months, every balance asserted${absence(tool)}`,
    async () => {
      for (const period of [
        january,
        february,
        periodOf('2026-03', '2026-04'),
        periodOf('2025-12', '2026-01'),
      ]) {
        const file = await journalFile(tool, wholeLedger(), period);
        expect(await complaintsOf(tool, file)).toBe('');
      }
    },
  );

  test.skipIf(isAbsent(tool))(
    `${tool} refuses a journal with one atom changed: the assertions are not decoration${absence(tool)}`,
    async () => {
      const file = await journalFile(tool, wholeLedger(), february);
      const text = readFileSync(file, 'utf8');
      const changed = text
        .replace(/( Liabilities:Undelivered +)0\.002000/, '$10.002001')
        .replace(/( Income:Jobs:1:1 +)-0\.002000/, '$1-0.002001');
      expect(changed).not.toBe(text);
      writeFileSync(file, changed);
      expect(await complaintsOf(tool, file)).not.toBe('');
    },
  );

  test.skipIf(isAbsent(tool))(`${tool} accepts a period within a day${absence(tool)}`, async () => {
    const period = periodOf('2026-01-31T22:00:05Z', '2026-01-31T22:00:20Z');
    expect(await complaintsOf(tool, await journalFile(tool, wholeLedger(), period))).toBe('');
  });
});

test.skipIf(isAbsent('hledger'))(
  `hledger has on every account what the CSV adds up to${absence('hledger')}`,
  async () => {
    const file = wholeLedger();
    const whole = periodOf('2026-01', '2026-03');
    const sums = new Map<string, bigint>();
    const add = (key: string, atoms: bigint) => sums.set(key, (sums.get(key) ?? 0n) + atoms);
    for (const row of readCsv((await booksFrom(file, whole, 'csv')).toString())) {
      add(`${row['debit_account']} ${row['commodity']}`, BigInt(row['atoms']!));
      add(`${row['credit_account']} ${row['commodity']}`, -BigInt(row['atoms']!));
    }
    const rows = readCsv(hledgerBalances(await journalFile('hledger', file, whole)).replaceAll('\n', '\r\n'));
    const balances = rows.map((row) => [
      `${row['account']} ${row['commodity']}`,
      BigInt(row['balance']!.replace('.', '')),
    ]);
    expect(Object.fromEntries(balances)).toEqual(
      Object.fromEntries([...sums].filter(([, atoms]) => atoms !== 0n)),
    );
  },
);

describe('as CSV', () => {
  test('what came late is in the period of its recording, with its own terms', async () => {
    const rows = readCsv((await booksFrom(wholeLedger(), february, 'csv')).toString());
    const late = rows.filter(({ category }) => category === 'payment');
    expect(late.map(({ recorded_at }) => recorded_at?.slice(0, 10))).toEqual(['2026-02-03', '2026-02-03']);
    expect(rows.map(({ category }) => category)).toEqual([
      'refund',
      'confirmation',
      'confirmation',
      'refund',
      'delivery',
      'payment',
      'delivery',
      'reversal',
      'payment',
      'credit_use',
      'spend_paid_out',
      'suspense_income',
      'suspense',
      'suspense_return',
      'own_transfer',
      'transfer_reversal',
    ]);
  });

  test('a payment is a row with all that an accountant asks for', async () => {
    const [row] = readCsv((await booksFrom(wholeLedger(), january, 'csv')).toString());
    const quote = twoMonths().first[0]!;
    expect(row).toEqual({
      seq: '4',
      leg: '1',
      date: '2026-01-31',
      recorded_at: '2026-01-31T22:00:03.000Z',
      occurred_at: '',
      category: 'payment',
      event: 'payment_settled',
      debit_account: 'Assets:Chain:Eip155-84532:USDC:0x909090-909090',
      credit_account: 'Liabilities:Undelivered',
      amount: '0.002000',
      commodity: 'USDC-84532',
      token: 'USDC',
      token_address: `0x${'5f'.repeat(20)}`,
      network: 'eip155:84532',
      decimals: '6',
      atoms: '2000',
      counterparty: expect.stringMatching(/^0x[0-9a-f]{40}$/),
      quote_digest: quote.stream,
      quote_source: '',
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      block: '77',
      log_index: '1',
      memo: '',
      service_id: '1',
      job_index: '1',
      call_id: '',
      payment_nonce: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      customer: expect.stringMatching(/^0x[0-9a-f]{40}$/),
      account_name: '',
      payout_batch: '',
    });
  });

  test('no field is a formula to a spreadsheet, and lines end as RFC 4180 says', async () => {
    const months = await Promise.all(
      [january, february].map((period) => booksFrom(wholeLedger(), period, 'csv')),
    );
    const text = months.join('');
    expect(text).toContain(`"'=1+2""x"`);
    expect(text).toContain(",'-ODD.,");
    expect(text.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
    for (const row of readCsv(text))
      for (const field of Object.values(row)) expect(field).not.toMatch(/^[=+\-@\t\r\n]/);
    expect(['=1', '+1', '-1', '@x', '\tx', 'a,b', 'a"b', 'plain'].map(csvField)).toEqual([
      "'=1",
      "'+1",
      "'-1",
      "'@x",
      "'\tx",
      '"a,b"',
      '"a""b"',
      'plain',
    ]);
    expect(['x;=1', 'x;\t＋1', ' =1', '＝1', '＋1', '－1', '＠x', 'a;b'].map(csvField)).toEqual([
      "x;'=1",
      "x;'\t'＋1",
      "' =1",
      "'＝1",
      "'＋1",
      "'－1",
      "'＠x",
      'a;b',
    ]);
  });
});

function textOf(value: Date | bigint | string | null | undefined): string {
  return value instanceof Date ? value.toISOString() : String(value ?? '');
}

test('Parquet holds the rows of the CSV, with types', async () => {
  const file = wholeLedger();
  const bytes = await booksFrom(file, february, 'parquet');
  const rows = await parquetReadObjects({ file: Uint8Array.from(bytes).buffer });
  const expected = readCsv((await booksFrom(file, february, 'csv')).toString());
  expect(rows.map((row) => Object.values(row).map(textOf))).toEqual(
    expected.map((row) => Object.values(row).map((text) => text.replace(/^'/, ''))),
  );
  expect(rows[0]).toMatchObject({ seq: expect.any(BigInt), recorded_at: expect.any(Date), atoms: '2000' });
});

/** What a journal asserts on a day of what is there and what is owed, zeros left out. */
async function assertions(period: typeof january, day: string): Promise<string[]> {
  const text = (await booksFrom(wholeLedger(), period, 'beancount')).toString();
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${day} balance`) && !/ 0(\.0+)? ~/.test(line))
    .filter((line) => !/ (Income|Expenses|Equity:Opening)/.test(line));
}

test('a month opens with what the one before it closed with; earlier income is the other side', async () => {
  const closing = await assertions(january, '2026-02-01');
  expect(closing.length).toBeGreaterThan(4);
  expect((await assertions(february, '2026-02-01')).toSorted()).toEqual(closing.toSorted());
});

function given(text: string): string {
  const file = path.join(temporaryFolder(), 'ledger.jsonl');
  writeFileSync(file, text);
  return file;
}

describe('books are not made of', () => {
  const { first } = twoMonths();
  const leaves = first.map(leafOf);
  const trailer = trailerOf(first.length);

  test.each([
    [
      'an export that begins later',
      () => given(leaves.slice(10).join('') + trailer),
      /event 11 is in the place of event 1/,
    ],
    [
      'an export with a line missing',
      () => given(leaves.toSpliced(5, 1).join('') + trailer),
      /event 7 is in the place of event 6/,
    ],
    ['a truncated export', () => given(leaves.join('').slice(0, -20)), /truncated/],
    ['another file', () => given('a,b\r\n1,2\r\n'), /a line that is not an event/],
    [
      'events of unknown types',
      () => given(leaves.join('').replaceAll('"type":"dead_lettered"', '"type":"gifted"') + trailer),
      /event \d+ cannot be read: run tollbook verify/,
    ],
    [
      'a payment without its first events',
      () => given(leaves.join('').replace('"type":"quote_issued"', '"type":"request_refused"') + trailer),
      /event \d+/,
    ],
  ])('%s', async (_, file, words) => {
    await expect(booksFrom(file(), january, 'csv')).rejects.toThrow(words);
  });
});

test('an export is complete up to its last event, and beyond it only up to the given time of the export', async () => {
  const { first, both } = twoMonths();
  const { toMs } = january;
  const alone = booksFrom(exportFile(first), january, 'csv', toMs - 1);
  await expect(alone).rejects.toThrow(/has no event of 2026-02-01T00.*--exported-at/);
  const stated = await booksFrom(exportFile(first), january, 'csv', toMs);
  expect(await booksFrom(exportFile(both), january, 'csv', -Infinity)).toEqual(stated);
});

test('what beancount would round is refused, and hledger is offered', async () => {
  const { both } = twoMonths();
  const file = exportFile(both);
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replaceAll('"1234567890123456789012"', `"${'9'.repeat(40)}"`));
  await expect(booksFrom(file, january, 'beancount')).rejects.toThrow(/28 digits.*--format hledger/);
  expect((await booksFrom(file, january, 'hledger')).toString()).toContain('9999999999999999999999.9');
});
