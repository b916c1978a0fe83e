import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { readAccounting } from '../../../../src/base/config/accounting.ts';
import { type ImportFormat, importFormats } from '../../../../src/base/values/format.ts';
import type { Period } from '../../../../src/base/values/period.ts';
import { readRates } from '../../../../src/audit/rules/bookkeeping/rates.ts';
import { openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../../src/finance/use-cases/books/format.ts';
import { writeImport } from '../../../../src/finance/use-cases/books/import/write-import.ts';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import { absence, hledgerBalances, isAbsent } from '../../../support/journal-tools.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { exportFile, february, january, readCsv, twoMonths } from './support.ts';

const example = (format: ImportFormat): string => `examples/accounting/${format}.toml`;
/** The example of a format, in euros. */
const tomlOf = (format: ImportFormat): string =>
  readFileSync(example(format), 'utf8').replace('currency = "USD"', 'currency = "EUR"');

// worth enough that each atom counts
const steady = `2025-12-01,USDC-84532,EUR,1234.567
2025-12-01,CREDIT,EUR,0.9137
2025-12-01,SPEND-84532,EUR,0.0171
2025-12-01,ODD-10,EUR,0.31
`;
const falling = `${steady}2026-02-03,USDC-84532,EUR,1000.01\n`;

const ledger = (): string => exportFile(twoMonths().both);

async function booksOf(period: Period, rates: string, toml = '[import]\ncurrency = "EUR"\n') {
  const reading = readRates(rates);
  if (reading.kind === 'problem') throw new Error(reading.words);
  const { accountMap, importTerms, tax } = readAccounting(toml, 'accounts.toml');
  const options = { rates: reading.rates, valueIn: importTerms?.currency, accountMap, tax };
  return openBooks(openFileSource(ledger(), Date.now(), february.toMs), period, options);
}

async function imported(
  format: ImportFormat,
  period: Period,
  rates = steady,
  toml = tomlOf(format),
): Promise<string> {
  const books = await booksOf(period, rates, toml);
  const bytes = await Array.fromAsync(writeImport(books, format, readAccounting(toml, 'accounts.toml')));
  return Buffer.concat(bytes).toString(format === 'datev' ? 'latin1' : 'utf8');
}

interface Line {
  readonly journal: string;
  readonly account: string;
  readonly cents: bigint;
}

const cents = (text = ''): bigint => BigInt(text === '' ? 0 : text.replace(/[.,]/, ''));

function linesOf(format: ImportFormat, text: string): Line[] {
  if (format === 'datev')
    return text
      .split('\r\n')
      .slice(2, -1)
      .flatMap((line) => {
        const fields = line.split(';');
        const [amount, journal = ''] = [cents(fields[0]), fields[10]];
        return [
          { journal, account: fields[6] ?? '', cents: amount },
          { journal, account: fields[7] ?? '', cents: -amount },
        ];
      });
  return readCsv(text).map((row) =>
    format === 'xero'
      ? {
          journal: `${row['*Narration']} ${row['*Date']}`,
          account: row['*AccountCode'] ?? '',
          cents: cents(row['*Amount']),
        }
      : {
          journal: row['JournalNo'] ?? '',
          account: row['AccountName'] ?? '',
          cents: cents(row['Debits']) - cents(row['Credits']),
        },
  );
}

const sumBy = (lines: readonly Line[], key: 'journal' | 'account'): Record<string, bigint> => {
  const sums: Record<string, bigint> = {};
  for (const line of lines) sums[line[key]] = (sums[line[key]] ?? 0n) + line.cents;
  return sums;
};

const fxOf = (format: ImportFormat): string =>
  ({ datev: '2660', xero: '497', quickbooks: 'Exchange Gain or Loss' })[format];

const nonZero = (sums: Record<string, bigint>): Record<string, bigint> =>
  Object.fromEntries(
    Object.entries(sums)
      .filter(([, sum]) => sum !== 0n)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );

/** What hledger says that the accounts have at the end of a period, at the rates of its last day, in cents by the program's account. */
async function hledgerWorth(
  format: ImportFormat,
  period: Period,
  rates: string,
): Promise<Record<string, bigint>> {
  const books = await booksOf(period, rates);
  const journal = path.join(temporaryFolder(), 'books.hledger');
  writeFileSync(journal, Buffer.concat(await Array.fromAsync(writeBooks(books, 'hledger'))));
  const { accountMap } = readAccounting(tomlOf(format), 'accounts.toml');
  const rows = readCsv(hledgerBalances(journal).replaceAll('\n', '\r\n'));
  const micros: Record<string, bigint> = {};
  for (const { account = '', commodity = '', balance = '' } of rows) {
    if (account === 'Equity:Opening') continue;
    const reading = readRates(rates);
    const rate = reading.kind === 'rates' ? reading.rates.on('2026-02-28', commodity, 'EUR') : undefined;
    const [whole = '', part = ''] = balance.replace('-', '').split('.');
    const [rateWhole = '', ratePart = ''] = (rate?.text ?? '0').split('.');
    const product = BigInt(whole + part) * BigInt(rateWhole + ratePart) * 1_000_000n;
    const unit = 10n ** BigInt(part.length + ratePart.length);
    const value = (2n * product + unit) / (2n * unit);
    micros[account] = (micros[account] ?? 0n) + (balance.startsWith('-') ? -value : value);
  }
  const sums: Record<string, bigint> = {};
  for (const [account, value] of Object.entries(micros)) {
    const rounded = ((value < 0n ? -value : value) + 5_000n) / 10_000n;
    accountMap.nameOf(account);
    const id =
      (format === 'quickbooks' ? accountMap.titleOf(account) : accountMap.codeOf(account)) ?? account;
    sums[id] = (sums[id] ?? 0n) + (value < 0n ? -rounded : rounded);
  }
  return sums;
}

describe.each(importFormats)('a file for %s', (format) => {
  test('has journals that each add up to zero', async () => {
    for (const period of [january, february]) {
      const lines = linesOf(format, await imported(format, period));
      expect(Object.values(sumBy(lines, 'journal')).filter((sum) => sum !== 0n)).toEqual([]);
      expect(lines.length).toBeGreaterThan(10);
    }
  });

  test.skipIf(isAbsent('hledger'))(
    `ends a first month with the balances of hledger, to the cent${absence('hledger')}`,
    async () => {
      const lines = linesOf(format, await imported(format, january));
      const { [fxOf(format)]: rounding = 0n, ...sums } = sumBy(lines, 'account');
      expect(nonZero(sums)).toEqual(nonZero(await hledgerWorth(format, january, steady)));
      // the rate did not change, so that only parts of cents are left to it
      expect([-1n, 0n, 1n]).toContain(rounding);
    },
  );

  test.skipIf(isAbsent('hledger'))(
    `leaves assets and liabilities after two months as hledger values them at the last rates${absence('hledger')}`,
    async () => {
      const both = await Promise.all([january, february].map((one) => imported(format, one, falling)));
      const sums = sumBy(
        both.flatMap((text) => linesOf(format, text)),
        'account',
      );
      const worth = await hledgerWorth(format, february, falling);
      const { accountMap } = readAccounting(tomlOf(format), 'accounts.toml');
      const ids = [
        'Assets:Chain',
        'Assets:Receivable',
        'Assets:Unconfirmed',
        'Liabilities:Undelivered',
        'Liabilities:RefundsDue',
        'Liabilities:Suspense',
        'Liabilities:PrepaidCredit',
      ].map((account) => {
        accountMap.nameOf(account);
        return (format === 'quickbooks' ? accountMap.titleOf(account) : accountMap.codeOf(account)) ?? '';
      });
      for (const id of ids) expect([id, sums[id] ?? 0n]).toEqual([id, worth[id] ?? 0n]);
      // the rate fell while the gateway had tokens
      expect(sums[fxOf(format)]).toBeGreaterThan(0n);
    },
  );

  test('is refused with everything that is missing: rates, countries and rates of tax', async () => {
    await expect(imported(format, january, '2026-01-01,ODD-10,EUR,1')).rejects.toThrow(
      /something is missing: .*a rate of USDC-84532 in EUR on 2026-01-31 or before; .*CREDIT/,
    );
    const taxed = `${tomlOf(format)}\n[tax.rates]\nDE = "19"\n[customers]\n"0x${'00'.repeat(20)}" = "DE"\n`;
    await expect(imported(format, january, steady, taxed)).rejects.toThrow(/the country of customer 0x/);
    const abroad = `${tomlOf(format)}\n[tax]\ndefault_country = "FR"\n[tax.rates]\nDE = "19"\n`;
    await expect(imported(format, january, steady, abroad)).rejects.toThrow(/a rate of tax of 1\/\d+ in FR/);
  });

  test('names every account that the chart does not have', async () => {
    const chart = tomlOf(format)
      .replace(/\["Income:FX"\][^[]*/, '')
      .replace(/\["Assets:Chain"\][^[]*/, '');
    await expect(imported(format, january, steady, chart)).rejects.toThrow(
      /no (?:code|title).*: Assets:Chain:Eip155-10:.*, Assets:Chain:Eip155-84532:/,
    );
  });
});

test('tax moves from the income of sales to what is owed to each country', async () => {
  const toml = `${tomlOf('xero')}\n[tax]\ndefault_country = "DE"\n[tax.rates]\nDE = "19"\n`;
  const sums = sumBy(linesOf('xero', await imported('xero', january, steady, toml)), 'account');
  const plain = sumBy(linesOf('xero', await imported('xero', january)), 'account');
  const owed = -(sums['820'] ?? 0n);
  const sold = (['200', '201', '202', '203'] as const).reduce((sum, id) => sum - (plain[id] ?? 0n), 0n);
  const expected = (sold * 19n) / 119n;
  expect([expected - 1n, expected, expected + 1n]).toContain(owed);
  expect(owed).toBeGreaterThan(0n);
});

test('a DATEV batch has the header and the 125 columns of format 700 and 13, within one fiscal year', async () => {
  const [header, columns = '', ...lines] = (await imported('datev', february)).split('\r\n');
  expect(header).toBe(
    '"EXTF";700;21;"Buchungsstapel";13;20260301000000000;;"";"";"";1001;1;20260101;4;20260201;20260228;' +
      '"Tollbook 2026-02";"";1;0;0;"EUR";;"";;;"03";;;"";""',
  );
  expect(columns.split(';')).toHaveLength(125);
  expect(columns.split(';')[113]).toBe('Festschreibung');
  for (const line of lines.slice(0, -1)) {
    expect(line).toMatch(/^\d{1,10},\d\d;"S";"EUR";;;;\d{4};\d{4};;\d{4};"\d{8}-\d\d";;;"[^"]{1,60}";/);
    expect(line.split(';')).toHaveLength(125);
  }
  await expect(
    imported('datev', { fromMs: january.fromMs - 86_400_000, toMs: february.toMs }),
  ).rejects.toThrow(/a DATEV batch is of one fiscal year, which begins in month 1/);
});

test('each example names every account of the chart, and the command writes the same bytes', async () => {
  const dir = temporaryFolder();
  const rates = path.join(dir, 'rates.csv');
  writeFileSync(rates, steady.replaceAll('EUR', 'USD') + steady);
  for (const format of importFormats) {
    const out = path.join(dir, format);
    const period = [
      '--from',
      '2026-01',
      '--to',
      '2026-02',
      '--exported-at',
      '2026-02-20',
      '--input',
      ledger(),
    ];
    const given = ['--rates', rates, '--accounts', example(format), '--out', out];
    expect(await tollbook(['export', '--format', format, ...period, ...given])).toMatchObject({ code: 0 });
    const inCurrency = readFileSync(example(format), 'utf8');
    const asWritten = await imported(format, january, steady.replaceAll('EUR', 'USD') + steady, inCurrency);
    expect(readFileSync(out, 'latin1')).toBe(asWritten);
  }
});

test('every mistake in what accounting programs and tax need is reported with its line and path', () => {
  const text = `[import]
currency = "euro"
each = "year"
speed = 1
[import.datev]
consultant = 12
client = "1"
[tax]
default_country = "Germany"
[tax.rates]
Germany = "19"
FR = "one fifth"
[customers]
acme = "de"
`;
  expect(() => readAccounting(text, 'accounts.toml')).toThrow(
    expect.objectContaining({
      mistakes: [
        [2, 'import.currency'],
        [3, 'import.each'],
        [4, 'import.speed'],
        [6, 'import.datev.consultant'],
        [7, 'import.datev.client'],
        [9, 'tax.default_country'],
        [11, 'tax.rates.Germany'],
        [12, 'tax.rates.FR'],
        [14, 'customers.acme'],
      ].map(([line, where]) => expect.objectContaining({ line, path: where, file: 'accounts.toml' })),
    }),
  );
});
