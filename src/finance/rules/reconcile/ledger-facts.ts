import { type EventData, type EventOf, hasAspect, type RecordedEvent } from '../../../ledger/rules/event.ts';
import {
  accountKey,
  type Account,
  addTo,
  type BlockRange,
  type PeriodOfTime,
  type TokenTerms,
} from './reconcile.ts';
import {
  movePayment,
  proofIn,
  type ProgressType,
  recoveredProgress,
  progressOf,
} from '../../../payments/rules/payment-progress.ts';
import { fullOptions } from '../../../payments/rules/quote.ts';
import { termsDiffer } from '../../../payments/rules/quote-terms.ts';
import type { BreakExplanation } from './tally.ts';
import { BookedFacts } from './booked-facts.ts';
import { isPlain } from './plain-payments.ts';
import { RecordedTransfers } from './recorded-transfers.ts';
import { amountOf, type OutFact, type PaymentFact, type Position, type SpendFact } from './fact.ts';

interface Stream {
  readonly quote: Pick<EventData<'quote_issued'>, 'options' | 'expires_at'> | undefined;
  payment: PaymentFact | undefined;
}

const dayMs = 86_400_000;
const eventsBetweenPrunes = 20_000;

/**
 * Folds the ledger to the facts that reconciling a period needs: the period's payments and transfers, everything still open, and the
 * sum of everything before. Closed payments of other periods are not kept, nor are the plain ones of the period that
 * `forgetPlain` takes: they are part of `plainIn`.
 */
export class LedgerFacts {
  /** Tokens and payees of the ledger's quotes and payments. */
  readonly accounts = new Map<string, Account>();
  readonly tokens = new Map<string, TokenTerms>();
  /** The ledger's own balance of each account before the period. */
  readonly opening = new Map<string, bigint>();
  /** By account, the amounts that the forgotten plain payments brought within the period. */
  readonly plainIn = new Map<string, bigint>();
  readonly #outs: OutFact[] = [];
  readonly #recorded = new RecordedTransfers();
  readonly #booked = new BookedFacts();
  readonly #straddling: OutFact[] = [];
  readonly spends: SpendFact[] = [];
  /** What operators said of breaks, by the break. */
  readonly explanations = new Map<string, BreakExplanation>();
  readonly #streams = new Map<string, Stream>();
  readonly #period: PeriodOfTime;
  readonly #ranges: ReadonlyMap<string, BlockRange>;
  readonly #isReopened: (stream: string) => boolean;
  readonly #forgetPlain: (payment: PaymentFact) => boolean;
  #at = '';
  #untilPrune = eventsBetweenPrunes;

  /**
   * @param isReopened the quotes with an event after they seemed closed (see ReopenedQuotes)
   * @param forgetPlain receives each payment of the period that needs no separate look (see PlainPayments), and says whether to forget it
   */
  constructor(
    period: PeriodOfTime,
    ranges: ReadonlyMap<string, BlockRange>,
    isReopened: (stream: string) => boolean,
    forgetPlain: (payment: PaymentFact) => boolean,
  ) {
    this.#forgetPlain = forgetPlain;
    this.#period = period;
    this.#ranges = ranges;
    this.#isReopened = isReopened;
  }

  /** Refunds, sweeps and recorded transfers within the period. */
  get outs(): readonly OutFact[] {
    const recorded = this.#recorded.all().filter((fact) => this.positionOfOut(fact) === 'in');
    return [...this.#outs, ...recorded];
  }

  /** Money in suspense that came before the period. */
  get carried(): readonly OutFact[] {
    return this.#recorded
      .all()
      .filter((fact) => fact.of === 'suspense' && this.positionOfOut(fact) === 'before');
  }

  /** Refunds and sweeps outside of the period's blocks that were recorded in it, or on the other side of one of its ends; recorded transfers. */
  get straddling(): readonly OutFact[] {
    const recorded = this.#recorded.all().filter((fact) => this.positionOfOut(fact) !== 'in');
    return [...this.#straddling, ...recorded];
  }

  /** Those that were recorded in the period and name a block before it: no earlier reconciliation has looked for them. */
  get late(): readonly OutFact[] {
    return this.straddling.filter(
      (fact) => this.positionOfOut(fact) === 'before' && this.recorded(fact.recordedAt) === 'in',
    );
  }

  /** What the books had at the end of the period. Asked for once the whole ledger was taken. */
  get booked(): BookedFacts {
    if (!this.#booked.isTaken) this.#takeBooked();
    return this.#booked;
  }

  #takeBooked(): void {
    this.#booked.take(this.payments(), this.#recorded.all());
  }

  /** Every payment that is kept, in the order of the ledger. */
  payments(): PaymentFact[] {
    const all = [...this.#streams.values()].flatMap(({ payment }) => payment ?? []);
    return all.toSorted((a, b) => a.seq - b.seq);
  }

  take(event: RecordedEvent): void {
    if (event.at > this.#at) this.#at = event.at;
    if (!this.#booked.isTaken && this.#at >= this.#period.to) this.#takeBooked();
    this.#fold(event);
    if (event.type === 'completed' || event.type === 'settlement_confirmed') this.#forget(event.stream);
    this.#untilPrune -= 1;
    if (this.#untilPrune === 0) this.#prune();
  }

  /** A payment's position relative to the period: by its block where that is known, else by its recording. */
  positionOf({ network, settled, startedAt }: PaymentFact): Position {
    return settled?.proof
      ? this.#blockPosition(network, settled.proof.blockNumber)
      : this.recorded(settled?.at ?? startedAt);
  }

  /** Whether it was recorded in the period and names a block before it, as `late`. */
  isLate(payment: PaymentFact): boolean {
    return this.positionOf(payment) === 'before' && this.recorded(payment.settled?.at ?? '') === 'in';
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
    if (!hasAspect(event, 'reconciliation')) return;
    switch (event.type) {
      case 'quote_issued':
        return this.#quote(event);
      case 'settlement_started':
        return this.#start(event);
      case 'payment_recovered':
        return this.#recover(event);
      case 'payment_settled':
      case 'settlement_disproved':
      case 'settlement_reorged':
        return this.#moveKnown(event);
      case 'refunded':
        this.#moveKnown(event);
        return this.#refund(event);
      case 'upstream_answered':
      case 'settlement_unknown':
      case 'settlement_failed':
      case 'settlement_confirmed':
      case 'redelivery_requested':
      case 'enqueued':
      case 'enqueued_again':
      case 'operator_requeued':
      case 'delivered':
      case 'completed':
      case 'dead_lettered':
      case 'refund_request_granted':
        // of a payment that is closed and summed up these say nothing new
        return void this.#move(event);
      case 'operator_sweep_recorded':
        return this.#sweepRecorded(event);
      case 'operator_transfer_recorded':
      case 'operator_transfer_reversed':
        return this.#transferRecorded(event);
      case 'spend_paid_out':
        return this.#spend(event);
      case 'operator_break_explained':
        return this.#explain(event);
      default:
        return event satisfies never;
    }
  }

  /** False if the event names no payment that is kept. */
  #move(event: EventOf<ProgressType>): boolean {
    const stream = this.#streams.get(event.stream);
    const before = stream?.payment;
    const payment = before && movePayment(before, event);
    if (!payment || payment === before) return false;
    stream.payment = payment.settled
      ? { ...payment, seq: payment.settled.seq, transaction: payment.settled.transaction }
      : payment;
    return true;
  }

  #moveKnown(event: EventOf<ProgressType>): void {
    if (!this.#move(event))
      throw new UnreadableLedgerError(event.seq, 'it names a payment that was never started');
  }

  #quote({ stream, data }: EventOf<'quote_issued'>): void {
    const { options, expires_at } = data;
    this.#streams.set(stream, { quote: { options, expires_at }, payment: undefined });
    for (const option of fullOptions(data)) this.noteToken(option);
  }

  /** A token at a payee, which is reconciled though no event of the period may name it. */
  noteToken(terms: {
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

  #start(event: EventOf<'settlement_started'>): void {
    const { stream, data } = event;
    const { payment } = data;
    this.noteToken(payment);
    let known = this.#streams.get(stream);
    if (!known) {
      known = { quote: undefined, payment: undefined };
      this.#streams.set(stream, known);
    }
    known.payment = {
      ...progressOf(data),
      ...termsOf(event, payment, payment.nonce),
      transaction: undefined,
      differs: known.quote ? termsDiffer(known.quote.options, payment) : 'quote',
    };
  }

  #recover(event: EventOf<'payment_recovered'>): void {
    const { stream, data } = event;
    this.noteToken(data);
    const payment: PaymentFact = {
      ...recoveredProgress(event),
      ...termsOf(event, data, data.payment_nonce),
      transaction: data.transaction,
      differs: undefined,
    };
    this.#streams.set(stream, { quote: undefined, payment });
  }

  #refund(event: EventOf<'refunded'>): void {
    const { refunded_from: payTo, refunded_to: to } = event.data;
    this.#out({ of: 'refund', ...this.#outOf(event), payTo, to, quoteDigest: event.stream });
  }

  #sweepRecorded(event: EventOf<'operator_sweep_recorded'>): void {
    this.noteToken(event.data);
    const { pay_to: payTo, swept_to: to } = event.data;
    this.#out({ of: 'sweep', ...this.#outOf(event), payTo, to, quoteDigest: undefined });
  }

  #outOf({ seq, data }: EventOf<'refunded' | 'operator_sweep_recorded'>) {
    const { network, asset, transaction } = data;
    const amount = BigInt(data.amount);
    return { seq, recordedAt: this.#at, network, asset, amount, transaction, ...proofIn(data) };
  }

  #transferRecorded(event: EventOf<'operator_transfer_recorded' | 'operator_transfer_reversed'>): void {
    if (event.type === 'operator_transfer_recorded') this.noteToken(event.data);
    const { gone, stand } = this.#recorded.take(event);
    for (const fact of gone) this.#sumOut({ ...fact, amount: -fact.amount });
    for (const fact of stand) this.#sumOut(fact);
  }

  #out(fact: OutFact): void {
    const position = this.positionOfOut(fact);
    const recorded = this.recorded(fact.recordedAt);
    if (position === 'in') this.#outs.push(fact);
    else if (recorded === 'in' || (position === 'before') !== (recorded === 'before'))
      this.#straddling.push(fact);
    this.#sumOut(fact);
  }

  positionOfOut({ network, blockNumber }: OutFact): Position {
    return this.#blockPosition(network, blockNumber);
  }

  /** Before the period it is part of the opening balance. */
  #sumOut(fact: OutFact): void {
    if (this.positionOfOut(fact) !== 'before') return;
    addTo(this.opening, fact, -fact.amount);
    // it may have been transferred to another payee
    if (fact.of !== 'refund') addTo(this.opening, { ...fact, payTo: fact.to }, fact.amount);
  }

  #explain({ at, data }: EventOf<'operator_break_explained'>): void {
    const { break_id: breakId, as, note, operator } = data;
    if (as === 'open') this.explanations.delete(breakId);
    else this.explanations.set(breakId, { as, note, operator, at });
  }

  #spend({ seq, data }: EventOf<'spend_paid_out'>): void {
    const { network, contract, operator, amount, transaction, block_number: block } = data;
    const recordedAt = this.#at;
    const position =
      block === undefined ? this.recorded(recordedAt) : this.#blockPosition(network, BigInt(block));
    if (position !== 'in') return;
    this.spends.push({ seq, network, contract, operator, amount: BigInt(amount), transaction, recordedAt });
  }

  /** Forgets the streams that need no separate look and are no longer payable. */
  #prune(): void {
    this.#untilPrune = eventsBetweenPrunes;
    for (const name of this.#streams.keys()) this.#forget(name);
  }

  /** Forgets a stream whose payment is closed and not of the period, or plain. */
  #forget(name: string): void {
    const stream = this.#streams.get(name);
    if (!stream || this.#isReopened(name)) return;
    const { payment } = stream;
    if (!payment?.settled && payableUntilMs(stream) > Date.parse(this.#at)) return;
    if (payment && this.#isPlain(payment)) {
      if (!this.#forgetPlain(payment)) return;
      addTo(this.plainIn, payment, amountOf(payment));
    } else if (payment) {
      if (!this.#isClosed(payment)) return;
      this.#close(payment);
    }
    this.#streams.delete(name);
  }

  /** Whether both its transfer and its record are of the period, and the ledger leaves nothing to ask. */
  #isPlain(payment: PaymentFact): boolean {
    const isIn = isPlain(payment) && this.recorded(payment.settled?.at ?? '') === 'in';
    return isIn && this.positionOf(payment) === 'in';
  }

  #isClosed(payment: PaymentFact): boolean {
    const { status, call, isRefunded, startedAt, settled } = payment;
    if (this.#straddles(payment)) return false;
    // it may have landed nevertheless
    if (status === 'settlement_failed') return this.#isOfOtherDays(startedAt, startedAt);
    if (!settled || !(call?.status === 'completed' || isRefunded)) return false;
    if (this.positionOf(payment) === 'in' || this.recorded(settled.at) === 'in') return false;
    return settled.proof !== undefined || this.#isOfOtherDays(startedAt, settled.at);
  }

  /** Whether the books and the chain differ by it at the end of the period. */
  #straddles(payment: PaymentFact): boolean {
    const isBefore = payment.settled !== undefined && this.positionOf(payment) === 'before';
    const isBooked = this.#booked.isTaken
      ? this.#booked.ofPayment(payment) > 0n
      : payment.settled !== undefined;
    return isBefore !== isBooked;
  }

  /** A payment without a place on the chain may have landed on either side of midnight. */
  #isOfOtherDays(startedAt: string, toldAt: string): boolean {
    const { from, to } = this.#period;
    return Date.parse(toldAt) < Date.parse(from) - dayMs || Date.parse(startedAt) >= Date.parse(to) + dayMs;
  }

  #close(payment: PaymentFact): void {
    if (payment.settled && this.positionOf(payment) === 'before')
      addTo(this.opening, payment, amountOf(payment));
  }
}

/** What was signed of a payment, and if that is recorded. */
function termsOf(
  { stream, seq, at }: RecordedEvent,
  terms: Pick<
    EventData<'payment_recovered'>,
    'network' | 'transfer_method' | 'asset' | 'payer' | 'pay_to' | 'symbol' | 'decimals' | 'amount'
  >,
  nonce: string,
) {
  const { network, asset, payer, pay_to: payTo, symbol, decimals, amount } = terms;
  return {
    payment: { network, asset, payer, nonce },
    quoteDigest: stream,
    seq,
    network,
    asset,
    payTo,
    symbol,
    decimals,
    payer,
    nonce,
    signedAmount: BigInt(amount),
    // of a recovered one the moved amount is on record, and nothing else
    isAtMost: terms.transfer_method === 'upto',
    startedAt: at,
  };
}

/** An unpaid quote is not needed after its expiry; one more hour is for payments that were being recorded. */
function payableUntilMs({ quote }: Stream): number {
  return ((quote?.expires_at ?? 0) + 3_600) * 1_000;
}

/** An event contradicts the events before it: the ledger cannot be folded further. */
export class UnreadableLedgerError extends Error {
  override readonly name = 'UnreadableLedgerError';

  constructor(seq: number, words: string) {
    super(`event ${seq} cannot be read: ${words}`);
  }
}
