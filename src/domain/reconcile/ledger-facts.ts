import type { EventData, RecordedEvent } from '../events/event.ts';
import {
  accountKey,
  type Account,
  type BlockRange,
  type PeriodOfTime,
  type TokenTerms,
} from './reconcile.ts';
import {
  type OutFact,
  type PaymentFact,
  type Place,
  type Position,
  type SpendFact,
  termsDiffer,
} from './fact.ts';
import type { PaymentStatus } from '../events/descriptor.ts';

interface Stream {
  quote: EventData<'quote_issued'> | undefined;
  readonly payments: PaymentFact[];
  touchedMs: number;
}

interface NamingEvent {
  readonly stream: string;
  readonly seq: number;
  readonly data: Pick<EventData<'settlement_failed'>, 'network' | 'asset' | 'payer' | 'payment_nonce'>;
}

const dayMs = 86_400_000;
/** A stream that is over is kept so long. */
const keptMs = 7 * dayMs;
const sweepEvery = 20_000;

/**
 * Folds the ledger to what reconciling a period needs: the period's payments and moves, whatever is still open, and the
 * sum of everything before. What is over and of another period is not kept.
 */
export class LedgerFacts {
  /** Tokens and payees that the ledger's own quotes and payments name. */
  readonly accounts = new Map<string, Account>();
  readonly tokens = new Map<string, TokenTerms>();
  /** The ledger's own balance of each account before the period. */
  readonly opening = new Map<string, bigint>();
  readonly outs: OutFact[] = [];
  readonly spends: SpendFact[] = [];
  readonly #streams = new Map<string, Stream>();
  readonly #period: PeriodOfTime;
  readonly #ranges: ReadonlyMap<string, BlockRange>;
  readonly #isReopened: (stream: string) => boolean;
  #at = '';
  #untilSweep = sweepEvery;

  /** `isReopened`: the quotes that something is told of after they seemed over (see ReopenedQuotes). */
  constructor(
    period: PeriodOfTime,
    ranges: ReadonlyMap<string, BlockRange>,
    isReopened: (stream: string) => boolean,
  ) {
    this.#period = period;
    this.#ranges = ranges;
    this.#isReopened = isReopened;
  }

  /** Every payment that is kept, in the order of the ledger. */
  payments(): PaymentFact[] {
    const all = [...this.#streams.values()].flatMap(({ payments }) => payments);
    return all.toSorted((a, b) => a.seq - b.seq);
  }

  take(event: RecordedEvent): void {
    if (event.at > this.#at) this.#at = event.at;
    this.#fold(event);
    const stream = this.#streams.get(event.stream);
    if (stream) stream.touchedMs = Date.parse(this.#at);
    this.#untilSweep -= 1;
    if (this.#untilSweep === 0) this.#sweep();
  }

  /** Where a payment belongs: by its block where it is known, else by when it was recorded. */
  positionOf({ network, place, settledAt, startedAt }: PaymentFact): Position {
    return place ? this.#blockPosition(network, place.blockNumber) : this.recorded(settledAt ?? startedAt);
  }

  recorded(at: string): Position {
    if (at < this.#period.from) return 'before';
    return at < this.#period.to ? 'in' : 'after';
  }

  #blockPosition(network: string, block: bigint): Position {
    const range = this.#ranges.get(network);
    if (!range || block < range.from) return 'before';
    return block <= range.to ? 'in' : 'after';
  }

  #fold(event: RecordedEvent): void {
    switch (event.type) {
      case 'quote_issued':
        return this.#quote(event);
      case 'settlement_started':
        return this.#start(event);
      case 'payment_settled':
        return this.#settle(event);
      case 'settlement_confirmed':
        // of one that is over and summed up it says nothing new
        return change(this.#find(event), {
          transaction: event.data.transaction,
          place: placeIn(event.data),
        });
      case 'settlement_unknown':
        return change(this.#find(event), { status: 'settlement_unknown' });
      case 'settlement_failed':
        return change(this.#find(event), { status: 'settlement_failed' });
      case 'settlement_disproved':
        return unsettle(this.#named(event), 'settlement_unknown', event.data.call);
      case 'settlement_reorged':
        return unsettle(this.#named(event), 'settling', event.data.call);
      case 'refunded':
        return this.#refund(event);
      case 'enqueued':
        return this.#enqueue(event);
      case 'operator_requeued':
        return change(this.#ofCall(event.stream, event.data.call_id), { call: 'enqueued' });
      case 'delivered':
      case 'completed':
      case 'dead_lettered':
        return change(this.#ofCall(event.stream, event.data.call_id), { call: event.type });
      case 'operator_sweep_recorded':
        return this.#sweepRecorded(event);
      case 'spend_paid_out':
        return this.#spend(event);
      default:
        return undefined;
    }
  }

  #quote({ stream, data }: Extract<RecordedEvent, { type: 'quote_issued' }>): void {
    this.#streams.set(stream, { quote: data, payments: [], touchedMs: 0 });
    for (const option of data.options) this.#knowToken(option);
  }

  #knowToken(terms: {
    readonly network: string;
    readonly asset: string;
    readonly pay_to: string;
    readonly symbol: string;
    readonly decimals: number;
  }): void {
    const { network, asset, pay_to: payTo, symbol, decimals } = terms;
    const account = { network, asset, payTo };
    const key = accountKey(account);
    if (!this.accounts.has(key)) this.accounts.set(key, account);
    const name = `${network}/${asset}/${decimals}`;
    if (!this.tokens.has(name)) this.tokens.set(name, { network, asset, symbol, decimals });
  }

  #start({ stream, seq, at, data }: Extract<RecordedEvent, { type: 'settlement_started' }>): void {
    const { payment } = data;
    this.#knowToken(payment);
    let known = this.#streams.get(stream);
    if (!known) {
      known = { quote: undefined, payments: [], touchedMs: 0 };
      this.#streams.set(stream, known);
    }
    const amount = BigInt(payment.amount);
    known.payments.push({
      quoteDigest: stream,
      seq,
      network: payment.network,
      asset: payment.asset,
      payTo: payment.pay_to,
      symbol: payment.symbol,
      decimals: payment.decimals,
      payer: payment.payer,
      nonce: payment.nonce,
      signedAmount: amount,
      amount,
      startedAt: at,
      status: 'settling',
      settledAt: undefined,
      transaction: undefined,
      place: undefined,
      call: 'none',
      callId: undefined,
      isRefunded: false,
      differs: termsDiffer(known.quote, payment),
    });
  }

  #settle(event: Extract<RecordedEvent, { type: 'payment_settled' }>): void {
    const { block_number, block_hash, log_index, amount, transaction } = event.data;
    const isProven = block_number !== undefined && block_hash !== undefined && log_index !== undefined;
    change(this.#named(event), {
      status: 'settled',
      seq: event.seq,
      amount: BigInt(amount),
      settledAt: this.#at,
      transaction,
      place: isProven ? placeIn({ block_number, block_hash, log_index }) : undefined,
    });
  }

  #enqueue({ stream, data }: Extract<RecordedEvent, { type: 'enqueued' }>): void {
    const payment = this.#streams
      .get(stream)
      ?.payments.findLast(
        ({ status, nonce, call }) => status === 'settled' && nonce === data.payment_nonce && call === 'none',
      );
    if (payment) change(payment, { call: 'enqueued', callId: data.call_id });
  }

  #refund(event: Extract<RecordedEvent, { type: 'refunded' }>): void {
    const { data, seq, stream } = event;
    change(this.#named(event), { isRefunded: true });
    this.#out({
      of: 'refund',
      seq,
      recordedAt: this.#at,
      network: data.network,
      asset: data.asset,
      payTo: data.refunded_from,
      to: data.refunded_to,
      amount: BigInt(data.amount),
      transaction: data.transaction,
      ...placeIn(data),
      quoteDigest: stream,
    });
  }

  #sweepRecorded({ seq, data }: Extract<RecordedEvent, { type: 'operator_sweep_recorded' }>): void {
    this.#knowToken(data);
    this.#out({
      of: 'sweep',
      seq,
      recordedAt: this.#at,
      network: data.network,
      asset: data.asset,
      payTo: data.pay_to,
      to: data.swept_to,
      amount: BigInt(data.amount),
      transaction: data.transaction,
      ...placeIn(data),
      quoteDigest: undefined,
    });
  }

  #out(fact: OutFact): void {
    const position = this.#blockPosition(fact.network, fact.blockNumber);
    if (position === 'in') this.outs.push(fact);
    if (position !== 'before') return;
    this.#sum(fact, -fact.amount);
    // it may have gone to another payee
    if (fact.of === 'sweep') this.#sum({ ...fact, payTo: fact.to }, fact.amount);
  }

  #spend({ seq, data }: Extract<RecordedEvent, { type: 'spend_paid_out' }>): void {
    const { network, contract, operator, amount, transaction, block_number: block } = data;
    const recordedAt = this.#at;
    const position =
      block === undefined ? this.recorded(recordedAt) : this.#blockPosition(network, BigInt(block));
    if (position !== 'in') return;
    this.spends.push({ seq, network, contract, operator, amount: BigInt(amount), transaction, recordedAt });
  }

  /** The payment that an event names; undefined where it was never started, or is over and of no interest. */
  #find({ stream, data }: NamingEvent): PaymentFact | undefined {
    const { network, asset, payer, payment_nonce: nonce } = data;
    return this.#streams
      .get(stream)
      ?.payments.findLast(
        (one) => one.network === network && one.asset === asset && one.payer === payer && one.nonce === nonce,
      );
  }

  #named(event: NamingEvent): PaymentFact {
    const payment = this.#find(event);
    if (payment) return payment;
    throw new UnreadableLedgerError(event.seq, 'it names a payment that was never started');
  }

  #ofCall(stream: string, callId: number): PaymentFact | undefined {
    return this.#streams.get(stream)?.payments.find((payment) => payment.callId === callId);
  }

  /** Forgets streams that are over and of no interest to the period. */
  #sweep(): void {
    this.#untilSweep = sweepEvery;
    const nowMs = Date.parse(this.#at);
    for (const [name, stream] of this.#streams) {
      const keptUntilMs = stream.payments.length > 0 ? stream.touchedMs + keptMs : payableUntilMs(stream);
      if (keptUntilMs > nowMs || this.#isReopened(name)) continue;
      if (!stream.payments.every((payment) => this.#isOver(payment))) continue;
      for (const payment of stream.payments) this.#close(payment);
      this.#streams.delete(name);
    }
  }

  #isOver(payment: PaymentFact): boolean {
    const { status, call, isRefunded, startedAt, settledAt, place } = payment;
    // it may have landed all the same
    if (status === 'settlement_failed') return this.#isOfOtherDays(startedAt, startedAt);
    if (status !== 'settled' || !(call === 'completed' || isRefunded)) return false;
    if (this.positionOf(payment) === 'in' || this.recorded(settledAt ?? '') === 'in') return false;
    return place !== undefined || this.#isOfOtherDays(startedAt, settledAt ?? '');
  }

  /** What has no place on the chain may have landed on either side of midnight. */
  #isOfOtherDays(startedAt: string, toldAt: string): boolean {
    const { from, to } = this.#period;
    return Date.parse(toldAt) < Date.parse(from) - dayMs || Date.parse(startedAt) >= Date.parse(to) + dayMs;
  }

  #close(payment: PaymentFact): void {
    if (payment.status === 'settled' && this.positionOf(payment) === 'before')
      this.#sum(payment, payment.amount);
  }

  #sum(account: Account, amount: bigint): void {
    const key = accountKey(account);
    this.opening.set(key, (this.opening.get(key) ?? 0n) + amount);
  }
}

/** A quote that nobody paid is of no use once it has expired; an hour is for payments that were under way. */
function payableUntilMs({ quote }: Stream): number {
  return ((quote?.expires_at ?? 0) + 3_600) * 1_000;
}

/** An event that cannot be what it says: nothing is guessed from there on. */
export class UnreadableLedgerError extends Error {
  override readonly name = 'UnreadableLedgerError';

  constructor(seq: number, words: string) {
    super(`event ${seq} cannot be read: ${words}`);
  }
}

function change(payment: PaymentFact | undefined, to: Partial<PaymentFact>): void {
  if (payment) Object.assign(payment, to);
}

function unsettle(payment: PaymentFact, status: PaymentStatus, call: 'withdrawn' | 'kept'): void {
  change(payment, { status, amount: payment.signedAmount, settledAt: undefined, place: undefined });
  if (call === 'withdrawn') change(payment, { call: 'none', callId: undefined });
}

function placeIn(data: {
  readonly block_number: string;
  readonly block_hash: string;
  readonly log_index: number;
}): Place {
  return {
    blockNumber: BigInt(data.block_number),
    blockHash: data.block_hash,
    logIndex: data.log_index,
  };
}
