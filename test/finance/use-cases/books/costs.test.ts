import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type BooksOptions, openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../../src/finance/use-cases/books/format.ts';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import type { BookFormat } from '../../../../src/base/values/format.ts';
import { readAccounting } from '../../../../src/base/config/accounting.ts';
import { readRates } from '../../../../src/audit/rules/bookkeeping/rates.ts';
import { booksStartMs, paidQuote, recorded } from '../../../audit/rules/bookkeeping/support.ts';
import { absence, complaintsOf, hledgerBalances, isAbsent } from '../../../support/journal-tools.ts';
import { temporaryFolder } from '../../../support/program.ts';
import { costOf, costReversalOf } from '../../../support/synthetic-ledger.ts';
import { exportFile, january, periodOf, readCsv } from './support.ts';

const payer = `0x${'90'.repeat(20)}`;

const atMs = Date.parse('2026-01-31T21:59:50Z');
const cost = (n: number, change: object = {}) => costOf(n, { payer, block_time: atMs / 1_000, ...change });

/** A payment in a token that is called like the chain's coin, and what five transactions cost. */
function ledger(): string {
  const quote = paidQuote(1, { symbol: 'ETH', decimals: 6 });
  quote.start();
  quote.settle('chain');
  quote.enqueue();
  quote.complete();
  const costs = [
    cost(1),
    cost(2, { purpose: 'sweep', l1_fee_wei: '4000000' }),
    cost(3, { purpose: 'claim', payer: `0x${'91'.repeat(20)}` }),
    // for another purpose than the first record says
    cost(5, { purpose: 'sweep' }),
    costReversalOf(cost(5, { purpose: 'sweep' })),
    cost(5),
    // a chain whose gas is free
    cost(4, { network: 'eip155:31337', symbol: 'COIN', gas_price_wei: '0' }),
  ];
  return exportFile(recorded([...quote.events, ...costs], booksStartMs));
}

async function booksOf(
  format: BookFormat,
  csv?: string,
  period = january,
  options: BooksOptions = {},
): Promise<string> {
  const reading = csv === undefined ? undefined : readRates(csv);
  if (reading?.kind === 'problem') throw new Error(reading.words);
  const source = openFileSource(ledger(), Date.now(), Date.parse('2026-05-01'));
  const books = await openBooks(source, period, { rates: reading?.rates, ...options });
  return Buffer.concat(await Array.fromAsync(writeBooks(books, format))).toString();
}

async function journal(tool: 'hledger' | 'beancount', csv?: string, period = january): Promise<string> {
  const file = path.join(temporaryFolder(), `books.${tool}`);
  writeFileSync(file, await booksOf(tool, csv, period));
  return file;
}

/** What the accounts of gas, and the opening, closed with. */
const closingOf = async (period: typeof january) =>
  readCsv(await booksOf('summary', undefined, period))
    .filter(({ account = '' }) => /Gas|Opening/.test(account))
    .map(({ account, commodity, closing }) => `${account} ${commodity} ${closing}`);

describe('what transactions cost', () => {
  test('is an expense by purpose against the coin of the account that paid, to the wei', async () => {
    const rows = readCsv(await booksOf('csv')).filter(({ category }) => category === 'gas');
    const coin = 'Assets:Gas:Eip155-84532:ETH-COIN:';
    expect(
      rows.map(({ debit_account, credit_account, amount, commodity, atoms }) =>
        [debit_account, credit_account, amount, commodity, atoms].join(' '),
      ),
    ).toEqual([
      `Expenses:Gas:Refund ${coin}0x909090-909090 0.000050000000350000 ETH-COIN-84532 50000000350000`,
      `Expenses:Gas:Sweep ${coin}0x909090-909090 0.000050000004350000 ETH-COIN-84532 50000004350000`,
      `Expenses:Gas:Claim ${coin}0x919191-919191 0.000050000000350000 ETH-COIN-84532 50000000350000`,
      `Expenses:Gas:Sweep ${coin}0x909090-909090 0.000050000000350000 ETH-COIN-84532 50000000350000`,
      `Expenses:Gas:Refund ${coin}0x909090-909090 0.000050000000350000 ETH-COIN-84532 50000000350000`,
    ]);
    expect(rows[0]).toMatchObject({
      event: 'transaction_cost_recorded',
      occurred_at: '2026-01-31T21:59:50.000Z',
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      block: '9000',
      token: 'ETH',
      token_address: '',
      decimals: '18',
    });
  });

  test('is taken out of the books where its record is reversed, with who paid for it and why', async () => {
    const [reversal] = readCsv(await booksOf('csv')).filter(({ category }) => category === 'gas_reversal');
    expect(reversal).toMatchObject({
      event: 'operator_cost_reversed',
      debit_account: 'Assets:Gas:Eip155-84532:ETH-COIN:0x909090-909090',
      credit_account: 'Expenses:Gas:Sweep',
      atoms: '50000000350000',
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      block: '',
      memo: 'somebody else paid for it',
    });
    // one of the two sweeps that were recorded stands
    expect(await closingOf(january)).toEqual([
      'Assets:Gas:Eip155-84532:ETH-COIN:0x909090-909090 ETH-COIN-84532 -0.000150000005050000',
      'Assets:Gas:Eip155-84532:ETH-COIN:0x919191-919191 ETH-COIN-84532 -0.000050000000350000',
      'Expenses:Gas:Claim ETH-COIN-84532 0.000050000000350000',
      'Expenses:Gas:Refund ETH-COIN-84532 0.000100000000700000',
      'Expenses:Gas:Sweep ETH-COIN-84532 0.000050000004350000',
    ]);
  });

  test('is in the summary, and an expense of one period alone', async () => {
    expect(await closingOf(january)).toContain('Expenses:Gas:Sweep ETH-COIN-84532 0.000050000004350000');
    const later = await closingOf(periodOf('2026-02', '2026-03'));
    expect(later).toContain('Equity:Opening ETH-COIN-84532 0.000200000005400000');
    expect(later.filter((line) => line.startsWith('Expenses'))).toEqual([]);
  });

  describe.each(['hledger', 'beancount'] as const)('in a journal for %s', (tool) => {
    test.skipIf(isAbsent(tool))(`is accepted, also with a price of the coin${absence(tool)}`, async () => {
      expect(await complaintsOf(tool, await journal(tool))).toBe('');
      expect(await complaintsOf(tool, await journal(tool, undefined, periodOf('2026-02', '2026-03')))).toBe(
        '',
      );
      const rates = '2026-01-01,ETH-COIN-84532,EUR,2500\n';
      expect(await complaintsOf(tool, await journal(tool, rates))).toBe('');
    });
  });

  /** The operator's own journal, which includes those of the ledger and books what it does not know, as docs/finance/costs.md says. */
  const own = {
    beancount: (included: readonly string[], account: string) =>
      `${included.map((file) => `include "${file}"\n`).join('')}
2026-01-01 open Assets:Exchange
2026-01-15 * "Funding"
  ${account}  0.5 ETH-COIN-84532
  Assets:Exchange
2026-02-10 * "Funding"
  ${account}  0.25 ETH-COIN-84532
  Assets:Exchange
`,
    hledger: (included: readonly string[], account: string) =>
      `${included.map((file) => `include ${file}\n`).join('')}
account Assets:Exchange
2026-01-15 * Funding
    ${account}  0.5 "ETH-COIN-84532"
    Assets:Exchange
2026-02-10 * Funding
    ${account}  0.25 "ETH-COIN-84532"
    Assets:Exchange
`,
  };
  const gas = ':Eip155-84532:ETH-COIN:0x909090-909090';
  const chart = readAccounting('["Assets:Gas"]\nname = "Assets:Wallets"', 'accounts.toml').accountMap;

  describe.each(['hledger', 'beancount'] as const)(
    'in a journal for %s that another one includes',
    (tool) => {
      test.skipIf(isAbsent(tool)).each([
        ['by its own name', 'Assets:Gas', undefined],
        ['by a name of the operator', 'Assets:Wallets', chart],
      ])(`leaves room for the funding of the account, %s${absence(tool)}`, async (_, name, accountMap) => {
        const folder = temporaryFolder();
        const month = path.join(folder, 'january');
        const rest = path.join(folder, 'february');
        writeFileSync(month, await booksOf(tool, undefined, january, { accountMap }));
        const year = periodOf('2026-01', '2026-03');
        const continued = { accountMap, continuedAtMs: january.toMs };
        writeFileSync(rest, await booksOf(tool, undefined, year, continued));
        const whole = path.join(folder, 'own');
        writeFileSync(whole, own[tool]([month, rest], `${name}${gas}`));
        expect(await complaintsOf(tool, whole)).toBe('');
        expect(await complaintsOf(tool, month)).toBe('');
      });
    },
  );

  test.skipIf(isAbsent('hledger'))(`has the worth that a rate gives it${absence('hledger')}`, async () => {
    const rates = '2026-01-01,ETH-COIN-84532,EUR,2500\n';
    expect(await booksOf('hledger', rates)).toContain('P 2026-01-01 "ETH-COIN-84532" 2500 "EUR"');
    const [first] = readCsv(await booksOf('csv', rates)).filter(({ category }) => category === 'gas');
    expect(first).toMatchObject({ rate: '2500', value: '0.125000', value_currency: 'EUR' });
    expect(hledgerBalances(await journal('hledger'))).toContain('Expenses:Gas:Claim');
  });
});
