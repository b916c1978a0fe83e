import fc from 'fast-check';
import { Balances, type Entry } from '../../../src/domain/bookkeeping/entry.ts';
import type { RecordedEvent } from '../../../src/domain/events/event.ts';
import { ReopenedQuotes } from '../../../src/domain/bookkeeping/reopened-quotes.ts';
import { Bookkeeper } from '../../../src/domain/bookkeeping/bookkeeper.ts';
import { hex32Of, paidJob } from '../../support/synthetic-ledger.ts';

/** An event before it has a place; `unknown` data, since some types are told that the books know first. */
export interface StreamEvent {
  readonly stream: string;
  readonly event: Pick<RecordedEvent, 'type' | 'data'>;
}

export const booksStartMs = Date.parse('2026-01-31T22:00:00.000Z');

/** Gives events their places, one a second. */
export function placed(told: readonly StreamEvent[], startMs = booksStartMs): RecordedEvent[] {
  const versions = new Map<string, number>();
  return told.map(({ stream, event }, i) => {
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

/** What is left on every account, as `account commodity: atoms`. */
export function leftOn(entries: readonly Entry[]): Record<string, bigint> {
  const balances = new Balances();
  for (const { moves } of entries) for (const move of moves) balances.post(move);
  const left = balances.list().filter(({ atoms }) => atoms !== 0n);
  return Object.fromEntries(
    left.map(({ account, commodity, atoms }) => [`${account} ${commodity.name}`, atoms]),
  );
}

type Paying = ReturnType<typeof paying>;

/** A quote with its payments, told step by step; paid with another token where one is given. */
export function paying(n: number, token: object = {}) {
  const job = paidJob(n, { startMs: booksStartMs });
  const stream = job[0]!.stream;
  const told: StreamEvent[] = [job[0]!];
  const started = job[2]!.event;
  if (started.type !== 'settlement_started') throw new Error('paidJob tells another story');
  const terms = { ...started.data.payment, ...token };
  const tell = (type: string, data: object): void => {
    told.push({ stream, event: { type, data } as StreamEvent['event'] });
  };
  let attempt = 0;
  let calls = 0;
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
    told,
    terms,
    amount: BigInt(terms.amount),
    start: () => {
      attempt += 1;
      tell('payment_verified', { ...of(), by: 'facilitator' });
      tell('settlement_started', { ...started.data, payment: { ...terms, nonce: nonce() } });
    },
    settle: (evidence: 'facilitator' | 'chain' | 'operator') =>
      tell('payment_settled', {
        ...of(),
        amount: terms.amount,
        transaction: transaction(),
        evidence,
        ...(evidence === 'chain' ? proof() : {}),
      }),
    confirm: () => tell('settlement_confirmed', { ...of(), transaction: transaction(), ...proof() }),
    disprove: (call: 'withdrawn' | 'kept') =>
      tell('settlement_disproved', { ...of(), transaction: transaction(), reason: 'not_on_chain', call }),
    reorg: (call: 'withdrawn' | 'kept') =>
      tell('settlement_reorged', {
        ...of(),
        transaction: transaction(),
        block_number: '77',
        block_hash: hex32Of('block'),
        call,
      }),
    fail: () => tell('settlement_failed', { ...of(), reason: 'expired' }),
    doubt: () => tell('settlement_unknown', { ...of(), reason: 'timeout' }),
    enqueue: () => {
      calls += 1;
      tell('enqueued', { call_id: n * 10 + calls, payment_nonce: nonce() });
    },
    deliver: () => tell('delivered', { call_id: n * 10 + calls, attempt: 1 }),
    complete: () => tell('completed', { call_id: n * 10 + calls, attempt: 1 }),
    die: () => tell('dead_lettered', { call_id: n * 10 + calls, attempt: 1, reason: 'http_400' }),
    requeue: () => tell('operator_requeued', { call_id: n * 10 + calls }),
    refund: (from: string = terms.pay_to) =>
      tell('refunded', {
        ...of(),
        amount: terms.amount,
        refunded_from: from,
        refunded_to: terms.payer,
        transaction: hex32Of(`refund ${n}`),
        ...proof(),
        operator: 'ann',
      }),
    topUp: () =>
      told.push({
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
    takeBack: () =>
      told.push({
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

/** What one quote's story left behind: the oracle that the books are held against. */
export interface Standing {
  basis: 'none' | 'word' | 'sure';
  call: 'none' | 'enqueued' | 'dead' | 'completed';
  isRefunded: boolean;
  hasFailed: boolean;
}

/** A legal story of one quote, drawn from numbers; with where it ends. */
export const anyPaymentEvents = fc
  .record({ n: fc.nat(5_000), draws: fc.array(fc.nat(99), { minLength: 1, maxLength: 14 }) })
  .map(({ n, draws }) => {
    const quote = paying(n);
    const at: Standing = { basis: 'none', call: 'none', isRefunded: false, hasFailed: false };
    quote.start();
    for (const draw of draws) takeStep(quote, at, draw);
    return { n, quote, at };
  });

function takeStep(quote: Paying, at: Standing, draw: number): void {
  const choices = stepsAt(quote, at);
  choices[draw % choices.length]?.();
}

function stepsAt(quote: Paying, at: Standing): (() => void)[] {
  const steps: (() => void)[] = [];
  if (at.basis === 'none') {
    for (const evidence of ['facilitator', 'chain', 'operator'] as const)
      steps.push(() => {
        quote.settle(evidence);
        at.basis = evidence === 'facilitator' ? 'word' : 'sure';
        at.hasFailed = false;
        if (at.call !== 'none' || at.isRefunded) return;
        quote.enqueue();
        at.call = 'enqueued';
      });
    steps.push(
      () => {
        quote.doubt();
        at.hasFailed = false;
      },
      () => {
        quote.fail();
        at.hasFailed = true;
      },
    );
    // another payment of the same quote; the first one stays failed
    if (at.hasFailed && at.call === 'none' && !at.isRefunded)
      steps.push(() => {
        quote.start();
        at.hasFailed = false;
      });
  } else {
    const undo = (call: 'withdrawn' | 'kept'): void => {
      if (at.basis === 'word') quote.disprove(call);
      else quote.reorg(call);
      at.basis = 'none';
      if (call === 'withdrawn') at.call = 'none';
    };
    steps.push(() => undo(at.call === 'enqueued' ? 'withdrawn' : 'kept'));
    if (at.basis === 'word')
      steps.push(() => {
        quote.confirm();
        at.basis = 'sure';
      });
    if (at.basis === 'sure' && !at.isRefunded)
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
        quote.die();
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

/** Mixes stories as they would stand in one ledger: the order within each stays. */
export function interleaved(stories: readonly (readonly StreamEvent[])[], turns: readonly number[]) {
  const rest = stories.map((story) => [...story]);
  const mixed: StreamEvent[] = [];
  for (let i = 0; rest.some(({ length }) => length > 0); i++) {
    const waiting = rest.filter(({ length }) => length > 0);
    mixed.push(waiting[(turns[i % Math.max(turns.length, 1)] ?? 0) % waiting.length]!.shift()!);
  }
  return mixed;
}
