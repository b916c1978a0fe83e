import fc from 'fast-check';
import type { LedgerEvent } from '../../../../src/ledger/rules/event.ts';
import {
  costOf,
  costReversalOf,
  hex32Of,
  payTo,
  returnOf,
  reversalOf,
  type StreamEvent,
  sweepOf,
  transferOf,
} from '../../../support/synthetic-ledger.ts';
import { anyPaymentEvents, paidQuote } from './support.ts';

type PaidQuote = ReturnType<typeof paidQuote>;

const account = 7;
/** An address of the operator that becomes a payee in the middle of the ledger. */
const laterPayee = `0x${'66'.repeat(20)}`;

/** Events of one append: nothing comes between them. */
type Append = readonly StreamEvent[];

const eventOf = (stream: string, type: string, data: object): StreamEvent => ({
  stream,
  event: { type, data } as LedgerEvent,
});

const ofAccount = (type: string, micros: string, more: object = {}): StreamEvent =>
  eventOf(`account:${account}`, type, { account_id: account, amount_micros: micros, ...more });

function bought(quote: PaidQuote, type: string, micros: string, more: object): StreamEvent {
  const last = quote.events.findLast(({ event }) => 'call_id' in event.data)!.event.data;
  const callId = (last as { readonly call_id: number }).call_id;
  return ofAccount(type, micros, { call_id: callId, quote_digest: quote.stream, ...more });
}

function topUp(quote: PaidQuote, currency?: string): StreamEvent {
  const { network, asset, symbol, decimals, amount, payer } = quote.terms;
  const terms = { network, asset, symbol, decimals, atoms: amount, payer };
  return bought(quote, 'credit_topped_up', '5000000', { ...terms, ...(currency && { currency }) });
}

const reversal = (quote: PaidQuote, micros: string, more: object) =>
  bought(quote, 'credit_reversed', micros, { missing_micros: '250000', ...more });

/** A delivered payment, and what happens after it seems closed. */
function closedQuote(n: number, draw: number): Append[] {
  const quote = paidQuote(n, draw % 2 === 0 ? {} : { asset: `0x${'5e'.repeat(20)}` });
  quote.start();
  quote.settle(draw % 3 === 0 ? 'facilitator' : 'chain');
  quote.enqueue();
  quote.complete();
  const after: (() => void)[] = [
    () => quote.events.push(topUp(quote)),
    () => {
      quote.events.push(topUp(quote, 'EUR'));
      quote.refund(laterPayee, '5');
      quote.events.push(reversal(quote, '1000000', { atoms: '5' }));
      quote.refund(payTo, '7');
      quote.events.push(reversal(quote, '1000000', { atoms: '7' }));
    },
    () => {
      quote.events.push(topUp(quote));
      if (draw % 3 === 0) quote.disprove('kept');
      else quote.reorg('kept');
      quote.events.push(reversal(quote, '4750000', {}));
      quote.settle('chain');
    },
    () => quote.refund(laterPayee, '9'),
    () => quote.confirm(),
  ];
  after[draw % after.length]!();
  return quote.events.map((event) => [event as StreamEvent]);
}

/** A completion, which used both parts of the credit or one; every second one was recovered and is corrected. */
function completion(n: number, draw: number): Append[] {
  const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
  const of = (type: string, data: object) => eventOf(`chat:${id}`, type, data);
  const credit = (type: string, micros: number, more: object = {}) =>
    of(type, { account_id: account, chat_id: id, amount_micros: String(micros), ...more });
  const completed = (ending: string) =>
    of('chat_completed', {
      ending,
      model: draw % 2 === 0 ? 'small' : 'large',
      prompt_tokens: 1,
      completion_tokens: 1,
      is_estimate: false,
      cost_micros: '1',
    });
  const admission = { caller: 'session', account_id: account, model: 'small', streaming: false };
  const used = 1_000 + draw * 300_000;
  const first = [
    [of('chat_admitted', admission), credit('credit_held', used)],
    [
      completed(draw % 2 === 0 ? 'recovered' : 'completed'),
      credit('credit_captured', used, { is_estimate: draw % 2 === 0 }),
    ],
  ];
  return draw % 2 === 0 ? [...first, [completed('completed'), credit('credit_corrected', 900)]] : first;
}

function spend(n: number): Append[] {
  const id = `00000000-0000-4000-9000-${String(n).padStart(12, '0')}`;
  const facts = {
    chat_id: id,
    network: 'eip155:84532',
    contract: `0x${'c0'.repeat(20)}`,
    commitment: hex32Of('commitment'),
    nonce: String(n),
    auth_hash: hex32Of(`auth ${n}`),
    operator: `0x${'0b'.repeat(20)}`,
    amount: '1000',
  };
  return [[eventOf(`spend:${id}`, 'spend_earned', facts)]];
}

const loaded = { models: 1, models_sha256: hex32Of('models'), currency: 'EUR' };

/** What operators record: money without a payment, sweeps, and what transactions cost. */
const recorded: Append[][] = [
  [
    [transferOf(1, { received_from: laterPayee, as: 'own' })],
    [transferOf(1, { received_from: laterPayee })],
    [transferOf(1, returnOf(1))],
  ],
  [[transferOf(2, { pay_to: laterPayee, as: 'income' })], [sweepOf(3, { pay_to: laterPayee })]],
  [[transferOf(3)], [reversalOf(3)]],
  [[sweepOf(1, { swept_to: laterPayee })], [sweepOf(2, { swept_to: laterPayee })]],
  [[costOf(1)], [costReversalOf(costOf(1))]],
  [[eventOf('operator:models', 'operator_models_loaded', loaded)]],
  [[ofAccount('credit_granted', '600000')], [ofAccount('credit_expired', '20000')]],
];

/** A legal ledger, for the books, of all that they book, drawn from numbers. */
export const anyBooks = fc
  .record({
    quotes: fc.uniqueArray(anyPaymentEvents, { selector: ({ n }) => n, maxLength: 4 }),
    closed: fc.array(fc.nat(29), { maxLength: 4 }),
    completions: fc.array(fc.nat(5), { maxLength: 3 }),
    turns: fc.array(fc.nat(20), { minLength: 1, maxLength: 40 }),
  })
  .map(({ quotes, closed, completions, turns }) =>
    mixed(
      [
        ...quotes.map(({ quote }) => quote.events.map((event) => [event as StreamEvent])),
        ...closed.map((draw, n) => closedQuote(6_000 + n, draw)),
        ...completions.map((draw, n) => completion(n, draw)),
        ...recorded,
        spend(1),
      ],
      turns,
    ).flat(),
  );

/** Mixes several histories into one ledger, and keeps the order within each. */
function mixed(histories: readonly (readonly Append[])[], turns: readonly number[]): Append[] {
  const rest = histories.map((history) => [...history]);
  const all: Append[] = [];
  for (let i = 0; rest.some(({ length }) => length > 0); i++) {
    const waiting = rest.filter(({ length }) => length > 0);
    all.push(waiting[(turns[i % turns.length] ?? 0) % waiting.length]!.shift()!);
  }
  return all;
}
