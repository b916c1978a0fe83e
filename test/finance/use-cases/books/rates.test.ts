import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type BooksOptions, openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../../src/finance/use-cases/books/format.ts';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import type { BookFormat } from '../../../../src/base/values/format.ts';
import { readRates, type Rates } from '../../../../src/audit/rules/bookkeeping/rates.ts';
import {
  booksStartMs,
  paidQuote,
  recorded,
  type StreamEvent,
} from '../../../audit/rules/bookkeeping/support.ts';
import { absence, complaintsOf, hledgerBalances, isAbsent } from '../../../support/journal-tools.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { exportFile, january, readCsv } from './support.ts';

const chatId = '00000000-0000-4000-8000-00000000000b';

const accountEvent = (type: string, data: object): StreamEvent =>
  ({ stream: 'account:7', event: { type, data: { account_id: 7, ...data } } }) as StreamEvent;
const chatEvent = (type: string, data: object): StreamEvent =>
  ({ stream: `chat:${chatId}`, event: { type, data } }) as StreamEvent;

/** In January 2000 atoms of USDC buy 2.10 USD of credit, of which an account with 1 USD granted uses 1.50. */
function ledger(currency?: string): string {
  const quote = paidQuote(1);
  quote.start();
  quote.settle('chain');
  quote.enqueue();
  const events = quote.events.splice(0);
  quote.complete();
  const { network, asset, symbol, decimals, amount: atoms, payer } = quote.terms;
  const paid = { network, asset, symbol, decimals, atoms, payer };
  const bought = { amount_micros: '2100000', call_id: 11, quote_digest: quote.stream, ...paid };
  const said = currency === undefined ? {} : { currency };
  const tokens = { prompt_tokens: 1, completion_tokens: 1, is_estimate: false };
  const completed = { ending: 'completed', model: 'small', cost_micros: '1500000', ...tokens };
  const captured = { account_id: 7, chat_id: chatId, amount_micros: '1500000', is_estimate: false };
  return exportFile(
    recorded(
      [
        ...events,
        accountEvent('credit_granted', { amount_micros: '1000000' }),
        accountEvent('credit_topped_up', { ...bought, ...said }),
        ...quote.events,
        chatEvent('chat_completed', completed),
        chatEvent('credit_captured', captured),
      ],
      booksStartMs,
    ),
  );
}

async function booksOf(file: string, format: BookFormat, options: BooksOptions = {}): Promise<string> {
  const books = await openBooks(openFileSource(file, Date.now(), january.toMs), january, options);
  return Buffer.concat(await Array.fromAsync(writeBooks(books, format))).toString();
}

function ratesOf(csv: string): Rates {
  const reading = readRates(csv);
  if (reading.kind === 'problem') throw new Error(reading.words);
  return reading.rates;
}

// 0.002 USDC: worth 2.00 USD at this rate, and 1.80 EUR
const csv = `date,commodity,currency,rate
2025-12-31,USDC-84532,USD,1000
2026-01-31,USDC-84532,EUR,900
2026-02-01,USDC-84532,USD,1
`;

describe('with rates', () => {
  for (const tool of ['hledger', 'beancount'] as const) {
    test.skipIf(isAbsent(tool))(`${tool} accepts the journal, prices included${absence(tool)}`, async () => {
      const file = path.join(temporaryFolder(), `books.${tool}`);
      writeFileSync(file, await booksOf(ledger('USD'), tool, { rates: ratesOf(csv), valueIn: 'USD' }));
      expect(await complaintsOf(tool, file)).toBe('');
    });
  }

  test.skipIf(isAbsent('hledger'))(
    `conversions are closed into Income:FX at the rate of the period's last day${absence('hledger')}`,
    async () => {
      const file = path.join(temporaryFolder(), 'books.hledger');
      const text = await booksOf(ledger('USD'), 'hledger', { rates: ratesOf(csv), valueIn: 'USD' });
      writeFileSync(file, text);
      expect(text).toContain('P 2025-12-31 "USDC-84532" 1000 "USD"');
      expect(text).not.toContain('P 2026-02-01');
      const rows = readCsv(hledgerBalances(file).replaceAll('\n', '\r\n'));
      const balances = rows.map(({ account, commodity, balance }) => `${account} ${balance} ${commodity}`);
      expect(balances).toEqual([
        'Assets:Chain:Eip155-84532:USDC:0x909090-909090 0.002000 USDC-84532',
        'Equity:Conversion 2.000000 USD',
        'Equity:Conversion -0.002000 USDC-84532',
        'Expenses:CreditGrants:Given 1.000000 USD',
        'Expenses:CreditGrants:Used -1.000000 USD',
        'Income:FX 0.100000 USD',
        expect.stringMatching(/^Income:Chat:Small-\w{8} -0\.500000 USD$/),
        'Liabilities:PrepaidCredit:Bought -1.600000 USD',
      ]);
    },
  );

  test('each row says what it is worth on its day, and the closing entry has the rates', async () => {
    const rows = readCsv(await booksOf(ledger('USD'), 'csv', { rates: ratesOf(csv), valueIn: 'EUR' }));
    expect(rows[0]).toMatchObject({ rate: '900', value: '1.800000', value_currency: 'EUR' });
    expect(rows.find(({ category }) => category === 'credit_grant')).toMatchObject({ rate: '', value: '' });
    expect(rows.at(-1)).toMatchObject({
      seq: '',
      category: 'conversion_close',
      debit_account: 'Income:FX',
      credit_account: 'Equity:Conversion',
      amount: '0.100000',
      commodity: 'USD',
      memo: 'USDC-84532 1000',
    });
  });

  test('of several currencies one is chosen, and a token that bought credit needs a rate in the currency of credit', async () => {
    const file = ledger('USD');
    await expect(booksOf(file, 'csv', { rates: ratesOf(csv) })).rejects.toThrow(
      /rates in EUR, USD: name one of them with --value-in/,
    );
    const euros = ratesOf('2026-01-31,USDC-84532,EUR,900');
    await expect(booksOf(file, 'csv', { rates: euros })).rejects.toThrow(
      /no rate of USDC-84532 in USD on 2026-01-31 or before/,
    );
  });
});

test('credit is in the currency that the ledger says, else in the one that is given, and never in another one', async () => {
  const commodities = async (file: string, options?: BooksOptions) =>
    new Set(readCsv(await booksOf(file, 'csv', options)).map(({ commodity }) => commodity));
  expect(await commodities(ledger('USD'))).toEqual(new Set(['USDC-84532', 'USD']));
  expect(await commodities(ledger())).toEqual(new Set(['USDC-84532', 'CREDIT']));
  expect(await commodities(ledger(), { currency: 'EUR' })).toEqual(new Set(['USDC-84532', 'EUR']));
  await expect(booksOf(ledger('USD'), 'csv', { currency: 'EUR' })).rejects.toThrow(/its credit is in USD/);
});

test.each([
  ['2026-02-30,USDC-1,USD,1', 1, /not a date/],
  ['date,commodity,currency,rate\n2026-01-01,usdc,USD,1', 2, /"usdc" is not a commodity/],
  ['2026-01-01,USDC-1,USD,0', 1, /not a rate above 0/],
  ['2026-01-01,USDC-1,USD,1e3', 1, /not a rate above 0/],
  ['2026-01-01,USD,USD,1', 1, /a rate of USD in itself/],
  ['2026-01-01,USDC-1,USD,1\n2026-01-01,USDC-1,USD,2', 2, /another rate of USDC-1 stands for 2026-01-01/],
  ['2026-01-01,USDC-1,USD,1,5', 1, /it has 5 fields, and not the four of date,commodity,currency,rate/],
  ['date;commodity;currency;rate\n2026-01-01;USDC-1;USD;1', 1, /it has 1 fields.*with commas/],
  ['', 1, /there is no rate in it/],
  ['date,commodity,currency,rate\n', 1, /there is no rate in it/],
])('a file of rates is refused at the line that is wrong: %j', (text, line, words) => {
  expect(readRates(text)).toMatchObject({ kind: 'problem', line, words: expect.stringMatching(words) });
});

test('a file of rates may have quotation marks around its fields, and empty lines', () => {
  const quoted = '"date","commodity","currency","rate"\r\n"2026-01-01","USDC-1","USD","0.5"\r\n\r\n';
  expect(ratesOf(quoted).on('2026-01-02', 'USDC-1', 'USD')?.text).toBe('0.5');
});

const sale = (text: string) =>
  readCsv(text).find(({ credit_account: account = '' }) => account.startsWith('Income:Chat'));

describe('by default', () => {
  const period = ['--from', '2026-01', '--to', '2026-02', '--exported-at', '2026-02-01'];

  test('an export has the values of the rates that TOLLBOOK_RATES names, and says where there are none', async () => {
    const file = path.join(temporaryFolder(), 'rates.csv');
    writeFileSync(
      file,
      '2026-01-31,USD,EUR,0.9\n2026-02-02,USDC-84532,EUR,900\n2025-12-31,USDC-84532,USD,1\n',
    );
    const env = { TOLLBOOK_RATES: file };
    const args = ['export', '--format', 'csv', ...period, '--input', ledger('USD'), '--value-in', 'EUR'];
    const ended = await tollbook(args, env);
    const rows = readCsv(ended.stdout);
    expect(rows.find(({ category }) => category === 'credit_grant')).toMatchObject({
      rate: '0.9',
      value: '0.900000',
      value_currency: 'EUR',
    });
    // never zero
    expect(rows[0]).toMatchObject({ commodity: 'USDC-84532', rate: '', value: '' });
    expect(ended).toMatchObject({
      code: 0,
      stderr: 'no rate of USDC-84532 in EUR on 2026-01-31 or before: the value is left empty\n',
    });
  });

  test('an export has the tax of each sale, by the country of its customer and its job', async () => {
    const accounts = path.join(temporaryFolder(), 'accounts.toml');
    const args = ['export', '--format', 'csv', ...period, '--input', ledger('USD')];
    writeFileSync(accounts, '[tax.rates]\nDE = "19"\n"DE chat" = "7"\n[customers]\n"unknown" = "DE"\n');
    const nowhere = await tollbook(args, { TOLLBOOK_ACCOUNTS: accounts });
    expect(nowhere.stderr).toBe('customer account:7 has no country: its tax is left empty\n');
    expect(sale(nowhere.stdout)).toMatchObject({ tax_amount: '', tax_note: 'customer without a country' });
    writeFileSync(accounts, '[tax]\ndefault_country = "DE"\n[tax.rates]\nDE = "19"\n"DE chat" = "7"\n');
    const { stdout } = await tollbook([...args, '--accounts', accounts]);
    // 0.50 USD with 7 % in it
    expect(sale(stdout)).toMatchObject({ tax_country: 'DE', tax_rate: '7', tax_amount: '0.032710' });
  });
});
