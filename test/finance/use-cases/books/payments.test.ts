import { describe, expect, test } from 'vitest';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import { sweepParts } from '../../../../src/finance/use-cases/books/sweep-payments.ts';
import { paidQuote, recorded, type StreamEvent } from '../../../audit/rules/bookkeeping/support.ts';
import { hex32Of } from '../../../support/synthetic-ledger.ts';
import { booksFrom, exportFile, february, periodOf, readCsv } from './support.ts';

const first = paidQuote(1);
const { network, asset, symbol, decimals, pay_to } = first.terms;
const token = { network, asset, symbol, decimals, pay_to };

function sweepAt(block: string, logIndex: number): StreamEvent {
  const transaction = hex32Of(`sweep ${block}/${logIndex}`);
  const place = { transaction, block_number: block, block_hash: hex32Of('b'), log_index: logIndex };
  const to = { swept_to: `0x${'88'.repeat(20)}`, amount: '10', operator: 'ann' };
  return {
    stream: `sweep:84532:${transaction}:${logIndex}`,
    event: { type: 'operator_sweep_recorded', data: { ...token, ...to, ...place } },
  };
}

/** Payments at the logs 1, 4 and 5 of block 77, the last of them confirmed late; a sweep between the first two and one behind all. */
function ledger() {
  const [one, four, five] = [1, 4, 5].map((n) => paidQuote(n, token)) as [
    typeof first,
    typeof first,
    typeof first,
  ];
  for (const quote of [one, four, five]) quote.start();
  for (const quote of [one, four]) {
    quote.settle('chain');
    quote.enqueue();
    quote.complete();
  }
  five.settle('facilitator');
  const paid = [one, four, five].flatMap(({ events }) => events.splice(0));
  five.confirm();
  const sweeps = [sweepAt('78', 0), sweepAt('77', 2)];
  const account = {
    stream: 'account:7',
    event: { type: 'credit_account_opened', data: { account_id: 7, name: 'acme' } },
  };
  const grant = {
    stream: 'account:7',
    event: { type: 'credit_granted', data: { account_id: 7, amount_micros: '5' } },
  };
  const all = [...paid, ...five.events, ...sweeps, account, grant] as StreamEvent[];
  return { file: exportFile(recorded(all)), quotes: { one, four, five }, sweeps };
}

const january = periodOf('2026-01', '2026-02');
const nameOf = ({ event }: StreamEvent): string => {
  const data = event.data as { transaction: string; log_index: number };
  return `${data.transaction}:${data.log_index}`;
};

describe('a row of the books', () => {
  test('names job, call, nonce, request and customer of its payment, and the sweep that carried it away', async () => {
    const { file, quotes, sweeps } = ledger();
    const rows = readCsv((await booksFrom(file, january, 'csv')).toString());
    const of = (digest: string) => rows.filter(({ quote_digest }) => quote_digest === digest);
    const [behind = '', between = ''] = sweeps.map(nameOf);
    for (const row of of(quotes.one.stream))
      expect(row).toMatchObject({
        service_id: '1',
        job_index: expect.stringMatching(/^\d+$/),
        payment_nonce: hex32Of('nonce 1 1'),
        request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        customer: quotes.one.terms.payer,
        account_name: '',
        payout_batch: between,
      });
    expect(of(quotes.one.stream).map(({ category, call_id }) => [category, call_id])).toEqual([
      ['payment', ''],
      ['delivery', '11'],
    ]);
    expect(of(quotes.four.stream).map(({ payout_batch }) => payout_batch)).toEqual([behind, behind]);
    // as long as its place is not known, its sweep is not either
    expect(of(quotes.five.stream).map(({ category, payout_batch }) => [category, payout_batch])).toEqual([
      ['payment', ''],
      ['confirmation', behind],
    ]);
    expect(
      rows.filter(({ category }) => category === 'sweep').map(({ payout_batch }) => payout_batch),
    ).toEqual([behind, between]);
    expect(rows.at(-1)).toMatchObject({
      category: 'credit_grant',
      customer: 'acme',
      account_name: 'acme',
      call_id: '',
    });
  });

  test('is the same in a journal, as tags', async () => {
    const { file, sweeps } = ledger();
    for (const tool of ['hledger', 'beancount'] as const) {
      const text = (await booksFrom(file, january, tool)).toString();
      for (const sweep of sweeps) expect(text.split(nameOf(sweep)).length - 1).toBeGreaterThan(1);
      expect(text).toMatch(/job: ?"?1\/\d/);
    }
  });
});

test('a sweep names every payment of its token and payee since the one before it, and their sum', async () => {
  const { file, quotes, sweeps } = ledger();
  const source = openFileSource(file, february.fromMs, february.fromMs);
  const carried = async (sweep: StreamEvent | undefined) => {
    const parts = await Array.fromAsync(
      sweepParts(source, (name) => sweep !== undefined && name === nameOf(sweep)),
    );
    return parts.map((part) => [
      part.entry.quoteDigest ?? part.kind,
      part.kind === 'payment' ? part.atoms : 0n,
    ]);
  };
  const { one, four, five } = quotes;
  expect(await carried(sweeps[1])).toEqual([
    [one.stream, one.amount],
    ['sweep', 0n],
  ]);
  expect(await carried(sweeps[0])).toEqual([
    [four.stream, four.amount],
    [five.stream, five.amount],
    ['sweep', 0n],
  ]);
});
