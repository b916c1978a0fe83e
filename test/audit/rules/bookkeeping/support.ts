import fc from 'fast-check';
import { Balances, type Entry } from '../../../../src/base/values/entry.ts';
import type { RecordedEvent } from '../../../../src/ledger/rules/event.ts';
import { ReopenedQuotes } from '../../../../src/audit/rules/bookkeeping/reopened-quotes.ts';
import { Bookkeeper } from '../../../../src/audit/rules/bookkeeping/bookkeeper.ts';
import { hex32Of, paidJob, payerKeyOf, signTerms } from '../../../support/synthetic-ledger.ts';

/** An event without its position in the ledger. */
export interface StreamEvent {
  readonly stream: string;
  readonly event: Pick<RecordedEvent, 'type' | 'data'>;
}

export const booksStartMs = Date.parse('2026-01-31T22:00:00.000Z');

/** Gives the events positions and times, one per second. */
export function recorded(events: readonly StreamEvent[], startMs = booksStartMs): RecordedEvent[] {
  const versions = new Map<string, number>();
  return events.map(({ stream, event }, i) => {
    const version = (versions.get(stream) ?? 0) + 1;
    versions.set(stream, version);
    return {
      ...event,
      seq: i + 1,
      stream,
      version,
      at: new Date(startMs + i * 1_000).toISOString(),
    } as RecordedEvent;
  });
}

export function entriesOf(events: readonly RecordedEvent[], isReopened = reopenedOf(events)): Entry[] {
  const bookkeeper = new Bookkeeper(isReopened);
  return events.map((event) => bookkeeper.post(event)).filter((entry) => entry !== undefined);
}

function reopenedOf(events: readonly RecordedEvent[]): (digest: string) => boolean {
  const reopened = new ReopenedQuotes();
  for (const event of events) reopened.skim(event);
  return (digest) => reopened.has(digest);
}

/** The balance of every account that is not zero, as `account commodity: atoms`. */
export function balancesOf(entries: readonly Entry[]): Record<string, bigint> {
  const balances = new Balances();
  for (const { moves } of entries) for (const move of moves) balances.post(move);
  const left = balances.list().filter(({ atoms }) => atoms !== 0n);
  return Object.fromEntries(
    left.map(({ account, commodity, atoms }) => [`${account} ${commodity.name}`, atoms]),
  );
}

type PaidQuote = ReturnType<typeof paidQuote>;

/** A quote and its payments; each method appends events. `token` replaces the terms of the payment. */
export function paidQuote(n: number, token: object = {}) {
  const job = paidJob(n, { startMs: booksStartMs });
  const stream = job[0]!.stream;
  const events: StreamEvent[] = [job[0]!];
  const started = job[2]!.event;
  if (started.type !== 'settlement_started')
    throw new Error('paidJob has no settlement_started as its third event');
  const terms = { ...started.data.payment, ...token };
  const append = (type: string, data: object): void => {
    events.push({ stream, event: { type, data } as StreamEvent['event'] });
  };
  let attempt = 0;
  let calls = 0;
  const enqueuedBefore = new Set<string>();
  const nonce = (): `0x${string}` => hex32Of(`nonce ${n} ${attempt}`);
  const of = () => ({
    network: terms.network,
    asset: terms.asset,
    payer: terms.payer,
    payment_nonce: nonce(),
  });
  const transaction = () => hex32Of(`transaction ${n} ${attempt}`);
  const proof = () => ({ block_number: '77', block_hash: hex32Of('block'), log_index: n % 9 });
  return {
    stream,
    events,
    terms,
    amount: BigInt(terms.amount),
    start: () => {
      attempt += 1;
      append('payment_verified', { ...of(), by: 'facilitator' });
      const payment = { ...terms, nonce: nonce() };
      const signature = signTerms(payerKeyOf(n), payment);
      append('settlement_started', { ...started.data, payment: { ...payment, signature } });
    },
    settle: (evidence: 'facilitator' | 'chain' | 'operator') =>
      append('payment_settled', {
        ...of(),
        amount: terms.amount,
        transaction: transaction(),
        evidence,
        ...(evidence === 'chain' ? proof() : {}),
      }),
    confirm: () => append('settlement_confirmed', { ...of(), transaction: transaction(), ...proof() }),
    disprove: (call: 'withdrawn' | 'kept') =>
      append('settlement_disproved', { ...of(), transaction: transaction(), reason: 'not_on_chain', call }),
    reorg: (call: 'withdrawn' | 'kept') =>
      append('settlement_reorged', {
        ...of(),
        transaction: transaction(),
        block_number: '77',
        block_hash: hex32Of('block'),
        call,
      }),
    fail: () => append('settlement_failed', { ...of(), reason: 'expired' }),
    markUnknown: () => append('settlement_unknown', { ...of(), reason: 'timeout' }),
    enqueue: () => {
      calls += 1;
      const type = enqueuedBefore.has(nonce()) ? 'enqueued_again' : 'enqueued';
      enqueuedBefore.add(nonce());
      append(type, { call_id: n * 10 + calls, payment_nonce: nonce() });
    },
    deliver: () => append('delivered', { call_id: n * 10 + calls, attempt: 1 }),
    complete: () => append('completed', { call_id: n * 10 + calls, attempt: 1 }),
    deadLetter: () => append('dead_lettered', { call_id: n * 10 + calls, attempt: 1, reason: 'http_400' }),
    requeue: () => append('operator_requeued', { call_id: n * 10 + calls }),
    grantRefund: () => append('refund_request_granted', { ...of(), operator: 'ann' }),
    refund: (from: string = terms.pay_to, amount: string = terms.amount) =>
      append('refunded', {
        ...of(),
        amount,
        refunded_from: from,
        refunded_to: terms.payer,
        transaction: hex32Of(`refund ${n}`),
        ...proof(),
        operator: 'ann',
      }),
    topUp: () =>
      events.push({
        stream: 'account:7',
        event: {
          type: 'credit_topped_up',
          data: {
            account_id: 7,
            amount_micros: '5000000',
            call_id: n * 10 + calls,
            quote_digest: stream,
          },
        } as never,
      }),
    reversePart: (atoms: string) =>
      events.push({
        stream: 'account:7',
        event: {
          type: 'credit_reversed',
          data: {
            account_id: 7,
            amount_micros: '1000000',
            missing_micros: '250000',
            atoms,
            call_id: n * 10 + calls,
            quote_digest: stream,
          },
        },
      }),
    reverseTopUp: () =>
      events.push({
        stream: 'account:7',
        event: {
          type: 'credit_reversed',
          data: {
            account_id: 7,
            amount_micros: '2000000',
            missing_micros: '3000000',
            call_id: n * 10 + calls,
            quote_digest: stream,
          },
        },
      }),
  };
}

/** The outcome of one quote, which the books must agree with. */
export interface QuoteOutcome {
  basis: 'none' | 'reported' | 'proven';
  call: 'none' | 'enqueued' | 'dead' | 'completed';
  isRefunded: boolean;
}

/** A legal sequence of events of one quote, drawn from numbers, with its outcome. */
export const anyPaymentEvents = fc
  .record({ n: fc.nat(5_000), draws: fc.array(fc.nat(99), { minLength: 1, maxLength: 14 }) })
  .map(({ n, draws }) => {
    const quote = paidQuote(n);
    const at: QuoteOutcome = { basis: 'none', call: 'none', isRefunded: false };
    quote.start();
    for (const draw of draws) takeStep(quote, at, draw);
    return { n, quote, at };
  });

function takeStep(quote: PaidQuote, at: QuoteOutcome, draw: number): void {
  const choices = stepsAt(quote, at);
  choices[draw % choices.length]?.();
}

function stepsAt(quote: PaidQuote, at: QuoteOutcome): (() => void)[] {
  const steps: (() => void)[] = [];
  if (at.basis === 'none') {
    for (const evidence of ['facilitator', 'chain', 'operator'] as const)
      steps.push(() => {
        quote.settle(evidence);
        at.basis = evidence === 'facilitator' ? 'reported' : 'proven';
        if (at.call !== 'none' || at.isRefunded) return;
        quote.enqueue();
        at.call = 'enqueued';
      });
    steps.push(quote.markUnknown, quote.fail);
  } else {
    const undo = (call: 'withdrawn' | 'kept'): void => {
      if (at.basis === 'reported') quote.disprove(call);
      else quote.reorg(call);
      at.basis = 'none';
      if (call === 'withdrawn') at.call = 'none';
    };
    steps.push(() => undo(at.call === 'enqueued' ? 'withdrawn' : 'kept'));
    if (at.basis === 'reported')
      steps.push(() => {
        quote.confirm();
        at.basis = 'proven';
      });
    if (at.basis === 'proven' && !at.isRefunded)
      steps.push(() => {
        quote.refund();
        at.isRefunded = true;
      });
  }
  if (at.call === 'enqueued')
    steps.push(
      quote.deliver,
      () => {
        quote.complete();
        at.call = 'completed';
      },
      () => {
        quote.deadLetter();
        at.call = 'dead';
      },
    );
  if (at.call === 'dead' && !at.isRefunded)
    steps.push(() => {
      quote.requeue();
      at.call = 'enqueued';
    });
  return steps;
}

/** Mixes the events of several quotes into one ledger and keeps the order within each quote. */
export function interleaved(quotes: readonly (readonly StreamEvent[])[], turns: readonly number[]) {
  const rest = quotes.map((events) => [...events]);
  const mixed: StreamEvent[] = [];
  for (let i = 0; rest.some(({ length }) => length > 0); i++) {
    const waiting = rest.filter(({ length }) => length > 0);
    mixed.push(waiting[(turns[i % Math.max(turns.length, 1)] ?? 0) % waiting.length]!.shift()!);
  }
  return mixed;
}
