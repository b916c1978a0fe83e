import { describe, expect, test } from 'vitest';
import { openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import { bookFormats } from '../../../../src/base/values/format.ts';
import { hashOfText, hashExports, sharedParts } from '../../../../src/finance/use-cases/periods/pins.ts';
import { booksFrom, exportFile, february, january, readCsv, twoMonths } from './support.ts';

const wholeLedger = () => exportFile(twoMonths().both);

/** Atoms by account and commodity, from the rows of the CSV. */
async function movements(period: typeof january) {
  const sums = new Map<string, { debits: bigint; credits: bigint }>();
  const at = (key: string) => {
    const known = sums.get(key) ?? { debits: 0n, credits: 0n };
    sums.set(key, known);
    return known;
  };
  for (const row of readCsv((await booksFrom(wholeLedger(), period, 'csv')).toString())) {
    at(`${row['debit_account']} ${row['commodity']}`).debits += BigInt(row['atoms'] ?? '');
    at(`${row['credit_account']} ${row['commodity']}`).credits += BigInt(row['atoms'] ?? '');
  }
  return sums;
}

const read = async (period: typeof january) =>
  readCsv((await booksFrom(wholeLedger(), period, 'summary')).toString());
const keyOf = (row: Record<string, string>) => `${row['account']} ${row['commodity']}`;

/** The balances that are not zero, without those of income and expenses. */
const balances = (rows: readonly Record<string, string>[], sum: string) =>
  rows
    .filter(({ account = '' }) => !/^(?:Income|Expenses|Equity:Opening)/.test(account))
    .map((row) => `${keyOf(row)} ${row[sum]}`)
    .filter((text) => !/ 0(?:\.0+)?$/.test(text));

describe('a summary', () => {
  test.each([
    ['January', january],
    ['February', february],
  ])(
    'of %s has the debits and credits of every row, and closes with what it opened with and these',
    async (_, period) => {
      const rows = await read(period);
      const expected = await movements(period);
      for (const row of rows) {
        const [opening = 0n, debits = 0n, credits = 0n, closing = 0n] = [
          'opening',
          'debits',
          'credits',
          'closing',
        ].map((sum) => BigInt(row[`${sum}_atoms`] ?? ''));
        expect(opening + debits - credits).toBe(closing);
        expect({ debits, credits }).toEqual(expected.get(keyOf(row)) ?? { debits: 0n, credits: 0n });
        expect(row['closing']?.replace('.', '').replace(/^(-?)0+(?=\d)/, '$1')).toBe(String(closing));
      }
      expect(new Set(rows.map(keyOf))).toEqual(new Set([...expected.keys(), ...rows.map(keyOf)]));
      expect([...expected.keys()].every((key) => rows.some((row) => keyOf(row) === key))).toBe(true);
    },
  );

  test('opens with what the month before closed with, but for income and expenses', async () => {
    expect(balances(await read(february), 'opening')).toEqual(balances(await read(january), 'closing'));
  });

  test('as a page has the same figures, and a sum of 0 for each token at both ends', async () => {
    const page = (await booksFrom(wholeLedger(), february, 'summary-page')).toString();
    expect(page).toMatch(
      /^# Summary of the books: 2026-02\n\nFrom 2026-02-01 up to but without 2026-03-01, /,
    );
    for (const row of await read(february))
      expect(page).toContain(
        `| ${[row['account'], row['opening'], row['debits'], row['credits'], row['closing']].join(' | ')} |`,
      );
    const sums = page.split('\n').filter((line) => line.startsWith('| Sum '));
    expect(sums.length).toBeGreaterThan(1);
    for (const line of sums) {
      const [, , opening, debits, credits, closing] = line.split('|').map((cell) => cell.trim());
      expect([Number(opening), Number(closing), debits === credits]).toEqual([0, 0, true]);
    }
  });
});

test('one pass over the books gives the hash of every format as it is written alone', async () => {
  const file = wholeLedger();
  const books = await openBooks(openFileSource(file, Date.now()), january);
  const alone = await Promise.all(
    bookFormats.map(async (format) => [format, hashOfText(await booksFrom(file, january, format))] as const),
  );
  expect(await hashExports(books)).toEqual(Object.fromEntries(alone));
});

const take = async (from: AsyncIterable<number> | undefined, most: number) => {
  const taken: number[] = [];
  for await (const item of from ?? []) {
    taken.push(item);
    if (taken.length === most) break;
  }
  return taken;
};

test('readers of one sequence get every item once, and one that leaves does not hold the others up', async () => {
  let next = 0;
  async function* numbers() {
    for (; next < 5; next++) yield next;
  }
  const [whole, short, other] = sharedParts(numbers(), 3);
  expect(await Promise.all([take(whole, 9), take(short, 2), take(other, 9)])).toEqual([
    [0, 1, 2, 3, 4],
    [0, 1],
    [0, 1, 2, 3, 4],
  ]);
});
