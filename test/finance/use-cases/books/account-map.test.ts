import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../../src/finance/use-cases/books/format.ts';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import { readAccounting } from '../../../../src/base/config/accounting.ts';
import type { BookFormat } from '../../../../src/base/values/format.ts';
import { absence, complaintsOf, isAbsent } from '../../../support/journal-tools.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { exportFile, february, readCsv, twoMonths } from './support.ts';

const toml = `
["Income:Jobs"]
name = "Income:Sales"
code = 8400

["Income:Jobs:1:6"]
name = "Income:Sales:Special"
code = "08401"

["Liabilities:RefundsDue"]
code = "3.100"

["Expenses:LostRefunds"]
name = "Expenses:Losses"

["Expenses:LostTopUps"]
name = "Expenses:Losses"
`;

async function exported(format: BookFormat, map: string = toml): Promise<string> {
  const source = openFileSource(exportFile(twoMonths().both), Date.now(), february.toMs);
  const books = await openBooks(source, february, {
    accountMap: readAccounting(map, 'accounts.toml').accountMap,
  });
  return Buffer.concat(await Array.fromAsync(writeBooks(books, format))).toString();
}

/** What the accounts of these names open with, together. */
const owed = (rows: ReturnType<typeof readCsv>, accounts: readonly string[]): bigint =>
  rows
    .filter(({ account = '', commodity }) => accounts.includes(account) && commodity === 'USDC-84532')
    .reduce((sum, row) => sum + BigInt(row['opening_atoms'] ?? 0), 0n);

describe('an export with a map of accounts', () => {
  test('names each account by the closest rule, in every row, with the codes of both sides', async () => {
    const rows = readCsv(await exported('csv'));
    const named = rows.map((row) => `${row['credit_account']} ${row['credit_code']}`);
    expect(named).toContain('Income:Sales:1:0 8400');
    expect(named.filter((name) => name.startsWith('Income:Jobs'))).toEqual([]);
    expect(rows.map((row) => `${row['debit_account']} ${row['debit_code']}`)).toContain(
      'Liabilities:RefundsDue 3.100',
    );
  });

  test('has the balances of the export without one, by account', async () => {
    const summary = readCsv(await exported('summary'));
    const plain = readCsv(await exported('summary', ''));
    const closings = (rows: typeof plain): string[] =>
      rows.map((row) => row['closing_atoms'] ?? '').toSorted();
    expect(closings(summary)).toEqual(closings(plain));
    expect(summary.find(({ account }) => account === 'Income:Sales:1:0')?.['code']).toBe('8400');
  });

  test('adds accounts up that get one name', async () => {
    const map =
      '["Liabilities:RefundsDue"]\nname = "Liabilities:Owed"\n["Liabilities:Suspense"]\nname = "Liabilities:Owed"';
    const before = owed(readCsv(await exported('summary', '')), [
      'Liabilities:RefundsDue',
      'Liabilities:Suspense',
    ]);
    expect(before).not.toBe(0n);
    expect(owed(readCsv(await exported('summary', map)), ['Liabilities:Owed'])).toBe(before);
  });

  for (const tool of ['beancount', 'hledger'] as const)
    test.skipIf(isAbsent(tool))(`is accepted by ${tool}, which has the codes${absence(tool)}`, async () => {
      const file = path.join(temporaryFolder(), 'books');
      const journal = await exported(tool);
      writeFileSync(file, journal);
      expect(await complaintsOf(tool, file)).toBe('');
      expect(journal).toContain(
        tool === 'hledger'
          ? 'account Income:Sales:1:0  ; code:8400'
          : 'open Income:Sales:1:0\n  code: "8400"',
      );
    });

  test('is refused if one name is the parent of another one', async () => {
    const map = '["Liabilities:Suspense"]\nname = "Liabilities:PrepaidCredit"';
    await expect(exported('csv', map)).rejects.toThrow(
      'Liabilities:PrepaidCredit is the parent of Liabilities:PrepaidCredit:',
    );
  });
});

test('every mistake of a map of accounts is reported with its line and path, and nothing is written', async () => {
  const dir = temporaryFolder();
  const [file, out] = [path.join(dir, 'accounts.toml'), path.join(dir, 'books.csv')];
  writeFileSync(
    file,
    '["Income:Jobs"]\nname = "Assets:Sales"\nnumber = 3\n["income"]\ncode = "1"\n["Income:FX"]\ncode = "a b"\n["Income:Refunds"]\n',
  );
  const period = ['--from', '2026-01', '--to', '2026-02', '--exported-at', '2026-02-20'];
  const books = ['--input', exportFile(twoMonths().both), '--accounts', file, '--out', out];
  const ended = await tollbook(['export', '--format', 'csv', ...period, ...books]);
  expect(ended.code).toBe(2);
  for (const words of [
    'accounts.toml:2  "Income:Jobs".name: must begin with Income:',
    'accounts.toml:3  "Income:Jobs".number: is unknown',
    'accounts.toml:4  income: is not an account',
    'accounts.toml:7  "Income:FX".code: must have 1 to 32 letters',
    'accounts.toml:8  "Income:Refunds": has neither name nor code nor title',
  ])
    expect(ended.stderr).toContain(words);
});
