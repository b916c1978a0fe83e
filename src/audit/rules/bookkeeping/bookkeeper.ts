import { chainAccount, gasAccount, gasExpense } from './account.ts';
import type { AgedItem } from './aging.ts';
import {
  unexplainedTransferCategories,
  unexplainedTransferPosition,
  type UnexplainedTransfer,
} from './unexplained-transfer.ts';
import { type BooksState, noBooks } from './books-state.ts';
import { currencyCommodity } from './commodity.ts';
import { creditMoves, spendMoves } from './credit.ts';
import type { Commodity, Entry, Move } from '../../../base/values/entry.ts';
import { type CreditParts, isParted, type PartedEvent } from '../../../accounts/rules/credit/credit-parts.ts';
import { BooksError } from './books-error.ts';
import {
  atomsOf,
  type BookedPayment,
  isUnsettled,
  movesBetween,
  type Position,
  positionOf,
} from './payment.ts';
import { costWei } from '../../../base/values/transaction-cost.ts';
import { movePayment, recoveredProgress, progressOf } from '../../../payments/rules/payment-progress.ts';
import { categories, creditCategories, entryOf, type MovingType, spendCategories } from './event-entry.ts';
import { type BookedQuote, OpenQuotes } from './open-quotes.ts';
import { type EventOf, hasAspect, type RecordedEvent } from '../../../ledger/rules/event.ts';
import { isTriggeredStream } from '../../../base/values/triggers/trigger.ts';

/**
 * Keeps double-entry books per commodity: takes a ledger's events in the order of `seq`, from the first on, and returns the
 * entry of each. A payment is a liability until it is delivered, then income. A payment that only a facilitator reported is
 * on a separate account until the chain shows it.
 */
export class Bookkeeper {
  readonly #quotes: OpenQuotes;
  readonly #state: BooksState;
  readonly #currency: Commodity;
  /** Records of unexplained transfers, by stream. */
  readonly #unexplainedTransfers = new Map<string, UnexplainedTransfer>();
  /** The names of credit accounts, by id. */
  readonly #accountNames = new Map<number, string>();
  /** The last completion: the event with its cost follows it. */
  #lastChat: { readonly stream: string; readonly model: string; readonly isRecovered: boolean } | undefined;

  /**
   * @param isReopened the quotes that must be kept after they seem closed (see ReopenedQuotes)
   * @param currency that of credit, such as `USD`; undefined if the ledger does not say it
   * @param state that of the events before, if the first event is not the ledger's (see `recall`); it is changed
   */
  constructor(isReopened: (digest: string) => boolean, currency?: string, state = noBooks()) {
    this.#quotes = new OpenQuotes(isReopened);
    this.#currency = currencyCommodity(currency);
    this.#state = state;
  }

  /**
   * Takes an event again that was posted before and that the given state includes, so that its quote, transfer or completion is known:
   * all of its stream that may be followed by another one, and the conversions of its quote, in order.
   * @param used of a capture that may be corrected: the parts that it moved
   * @throws BooksError as it did when it was posted
   */
  recall(event: RecordedEvent, used?: CreditParts): void {
    if (!isParted(event)) this.post(event);
    else if (event.type === 'credit_topped_up' || event.type === 'credit_reversed') this.#convertQuote(event);
    else if (event.type === 'credit_captured' || event.type === 'credit_corrected')
      this.#state.credit.recallCapture(event.stream, this.#chatOf(event)?.isRecovered ? used : undefined);
  }

  /** The number of quotes in memory: the only state that grows, with the number of open quotes. */
  get openQuotes(): number {
    return this.#quotes.size;
  }

  /** The payments whose settlement is not known yet. */
  openSettlements(): AgedItem[] {
    return [...this.#quotes.list()].flatMap(([name]) => this.openSettlement(name) ?? []);
  }

  /** The payment of a quote, if its settlement is not known yet. */
  openSettlement(name: string): AgedItem | undefined {
    const open = this.#quotes.find(name)?.payment;
    if (!open || !isUnsettled(open)) return undefined;
    const { payment, token, signedAtoms, startedAt } = open;
    return {
      kind: 'settlement',
      account: undefined,
      name,
      counterparty: payment.payer,
      accountName: undefined,
      commodity: token,
      atoms: signedAtoms,
      since: startedAt,
    };
  }

  /**
   * The next event's entry; undefined if no money moves.
   * @param used the parts of credit that it moved, if they are known: else the given state decides
   * @throws BooksError if it contradicts the events before it
   */
  post(event: RecordedEvent, used?: CreditParts): Entry | undefined {
    this.#quotes.tick(Date.parse(event.at));
    // no payer paid for the call of a trigger
    if (!hasAspect(event, 'bookkeeping') || isTriggeredStream(event.stream)) return undefined;
    switch (event.type) {
      case 'quote_issued': {
        const { service_id: serviceId, job_index: jobIndex, expires_at, source } = event.data;
        this.#quotes.issue(event.stream, { serviceId, jobIndex, source }, expires_at);
        return undefined;
      }
      case 'settlement_started':
        return this.#start(event);
      case 'payment_recovered':
        return this.#recover(event);
      case 'settlement_unknown':
      case 'settlement_failed':
        return this.#note(event);
      case 'settlement_confirmed':
        // a quote that is closed and forgotten was proven before
        return this.#quotes.find(event.stream) && this.#move(event);
      case 'payment_settled':
      case 'settlement_disproved':
      case 'settlement_reorged':
      case 'refunded':
      case 'redelivery_requested':
      case 'enqueued':
      case 'enqueued_again':
      case 'completed':
      case 'dead_lettered':
      case 'operator_requeued':
      case 'refund_request_granted':
        return this.#move(event);
      case 'operator_sweep_recorded':
        return this.#sweep(event);
      case 'operator_transfer_recorded':
      case 'operator_transfer_reversed':
        return this.#recordTransfer(event);
      case 'transaction_cost_recorded':
      case 'operator_cost_reversed':
        return this.#bookCost(event);
      case 'credit_topped_up':
      case 'credit_reversed':
        return this.#convert(event, used);
      case 'credit_granted':
      case 'credit_captured':
      case 'credit_corrected':
      case 'credit_expired':
        return this.#moveCredit(event, used);
      case 'spend_earned':
      case 'spend_paid_out':
      case 'spend_failed':
        return this.#moveSpend(event);
      case 'credit_account_opened':
        this.#accountNames.set(event.data.account_id, event.data.name);
        return undefined;
      case 'chat_completed':
        this.#lastChat = {
          stream: event.stream,
          model: event.data.model,
          isRecovered: event.data.ending === 'recovered',
        };
        return undefined;
      default:
        return event satisfies never;
    }
  }

  #start(event: EventOf<'settlement_started'>): undefined {
    const { payment: signed, request_id: requestId } = event.data;
    this.#state.payees.note(event.seq, signed);
    const quote = this.#quoteOf(event, event.stream);
    const { network, asset, payer, nonce } = signed;
    const payment: BookedPayment = {
      ...progressOf(event.data),
      payment: { network, asset, payer, nonce },
      serviceId: quote.serviceId,
      jobIndex: quote.jobIndex,
      token: this.#state.commodities.token(signed),
      payTo: signed.pay_to,
      signedAtoms: BigInt(signed.amount),
      requestId,
      startedAt: event.at,
      topUp: undefined,
      refundedFrom: new Map(),
    };
    quote.payment = payment;
  }

  /** Its job is unknown until a delivery is requested. */
  #recover(event: EventOf<'payment_recovered'>): Entry | undefined {
    const { network, asset, payer, payment_nonce: nonce, pay_to: payTo, amount } = event.data;
    this.#state.payees.note(event.seq, event.data);
    const job = { serviceId: 0, jobIndex: 0 };
    this.#quotes.issue(event.stream, { ...job, source: undefined }, 0);
    const payment: BookedPayment = {
      ...recoveredProgress(event),
      payment: { network, asset, payer, nonce },
      ...job,
      token: this.#state.commodities.token(event.data),
      payTo,
      signedAtoms: BigInt(amount),
      requestId: undefined,
      startedAt: event.at,
      topUp: undefined,
      refundedFrom: new Map(),
    };
    this.#quoteOf(event, event.stream).payment = payment;
    const moves = movesBetween(new Map(), positionOf(payment), payment.token);
    return entryOf(event, 'payment', moves, {
      counterparty: payer,
      quoteDigest: event.stream,
      payment,
      memo: 'recovered',
    });
  }

  /** No money moves. A failed payment may be forgotten already. */
  #note(event: EventOf<'settlement_unknown' | 'settlement_failed'>): undefined {
    const quote = this.#quotes.find(event.stream);
    if (quote?.payment) quote.payment = movePayment(quote.payment, event);
    this.#quotes.settle(event.stream);
  }

  #move(event: EventOf<MovingType>): Entry | undefined {
    const quote = this.#quoteOf(event, event.stream);
    const before = quote.payment;
    const moved = before && movePayment(before, event);
    if (!before || !moved || moved === before)
      throw new BooksError(event.seq, `${event.type} fits no payment of its quote`);
    const after = { ...moved, ...this.#ownChange(event, before) };
    quote.payment = after;
    const moves = movesBetween(positionOf(before), positionOf(after), after.token);
    this.#quotes.settle(event.stream);
    const counterparty = event.type === 'refunded' ? event.data.refunded_to : after.payment.payer;
    return entryOf(event, categories[event.type], moves, {
      counterparty,
      quoteDigest: event.stream,
      quoteSource: quote.source,
      // the amount taken back belongs to its former place
      payment: after.settled ? after : { ...after, settled: before.settled },
    });
  }

  /** The changes other than the payment's progress. */
  #ownChange(event: EventOf<MovingType>, before: BookedPayment): Partial<BookedPayment> {
    switch (event.type) {
      case 'settlement_disproved':
      case 'settlement_reorged':
        return event.data.call === 'withdrawn' ? { topUp: undefined } : {};
      case 'redelivery_requested':
        return {
          serviceId: event.data.service_id,
          jobIndex: event.data.job_index,
          requestId: event.data.request_id,
        };
      case 'refunded':
        return {
          refundedFrom: withRefund(
            before,
            event,
            this.#state.payees.holding(before.token, event.data.refunded_from, event.seq),
          ),
        };
      case 'completed':
      case 'dead_lettered':
      case 'operator_requeued':
        return before.topUp && before.topUp.reversedAtoms >= atomsOf(before) ? { topUp: undefined } : {};
      default:
        return {};
    }
  }

  /** Bought credit: converts the amount owed for the payment, or reverses the conversion. */
  #convert(
    event: EventOf<'credit_topped_up' | 'credit_reversed'>,
    used: CreditParts | undefined,
  ): Entry | undefined {
    const { account_id, quote_digest: quoteDigest } = event.data;
    const { quote, moves, payment } = this.#convertQuote(event);
    const of = {
      counterparty: `account:${account_id}`,
      quoteDigest,
      quoteSource: quote.source,
      payment,
      accountName: this.#accountNames.get(account_id),
    };
    const category = event.type === 'credit_topped_up' ? 'top_up' : 'top_up_reversal';
    return entryOf(event, category, [...moves, ...this.#creditMoves(event, used)], of);
  }

  #convertQuote(event: EventOf<'credit_topped_up' | 'credit_reversed'>) {
    const { quote_digest: quoteDigest, call_id: callId } = event.data;
    const quote = this.#quoteOf(event, quoteDigest);
    const before = quote.payment;
    if (before?.call?.callId !== callId)
      throw new BooksError(event.seq, `call ${callId} was never enqueued for this quote`);
    const after = {
      ...before,
      topUp: { reversedAtoms: event.type === 'credit_topped_up' ? 0n : reversedBy(event, before) },
    };
    quote.payment = after;
    const moves = movesBetween(positionOf(before), positionOf(after), before.token);
    this.#quotes.settle(quoteDigest);
    return { quote, moves, payment: after };
  }

  #sweep(event: EventOf<'operator_sweep_recorded'>): Entry | undefined {
    const { pay_to, swept_to, amount } = event.data;
    const commodity = this.#state.commodities.token(event.data);
    const debit = this.#state.payees.holding(commodity, swept_to, event.seq);
    const credit = chainAccount(commodity, pay_to);
    const atoms = BigInt(amount);
    const moves = atoms > 0n ? [{ debit, credit, commodity, atoms }] : [];
    return entryOf(event, 'sweep', moves, { counterparty: swept_to });
  }

  /** Money that came without a payment: booked, moved on, or taken out of the books again. */
  #recordTransfer(
    event: EventOf<'operator_transfer_recorded' | 'operator_transfer_reversed'>,
  ): Entry | undefined {
    const before = this.#unexplainedTransfers.get(event.stream);
    const after = event.type === 'operator_transfer_recorded' ? event.data : undefined;
    const terms = after ?? before?.data;
    if (!terms) throw new BooksError(event.seq, 'a transfer is reversed that was never recorded');
    this.#state.payees.note(event.seq, terms);
    const token = this.#state.commodities.token(terms);
    const position = unexplainedTransferPosition(after, token, (address) =>
      this.#state.payees.holding(token, address, event.seq),
    );
    if (after) this.#unexplainedTransfers.set(event.stream, { data: after, position });
    else this.#unexplainedTransfers.delete(event.stream);
    const moves = movesBetween(before?.position ?? new Map(), position, token);
    return entryOf(event, after ? unexplainedTransferCategories[after.as] : 'transfer_reversal', moves, {
      counterparty: terms.received_from,
      // a decision about money in suspense moves nothing on the chain
      place: after?.returned ?? (before && { transaction: terms.transaction, log_index: terms.log_index }),
    });
  }

  #bookCost(event: EventOf<'transaction_cost_recorded' | 'operator_cost_reversed'>): Entry | undefined {
    const commodity = this.#state.commodities.coin(event.data);
    const [expense, coin] = [gasExpense(event.data.purpose), gasAccount(commodity, event.data.payer)];
    const isReversed = event.type === 'operator_cost_reversed';
    const [debit, credit] = isReversed ? [coin, expense] : [expense, coin];
    const atoms = costWei(event.data);
    const moves = atoms > 0n ? [{ debit, credit, commodity, atoms }] : [];
    return isReversed
      ? entryOf(event, 'gas_reversal', moves, { memo: event.data.why })
      : entryOf(event, 'gas', moves, {});
  }

  #moveCredit(
    event: EventOf<'credit_granted' | 'credit_captured' | 'credit_corrected' | 'credit_expired'>,
    used: CreditParts | undefined,
  ): Entry | undefined {
    const counterparty = `account:${event.data.account_id}`;
    return entryOf(event, creditCategories[event.type], this.#creditMoves(event, used), {
      counterparty,
      accountName: this.#accountNames.get(event.data.account_id),
      memo: this.#chatOf(event)?.model,
    });
  }

  #creditMoves(event: PartedEvent, used: CreditParts | undefined): Move[] {
    const chat = this.#chatOf(event);
    const parts = used ?? this.#state.credit.apply(event, chat?.isRecovered ?? false);
    return creditMoves(event, parts, chat?.model, this.#currency);
  }

  /** The completion that an event of its stream follows. */
  #chatOf({ stream }: RecordedEvent) {
    return this.#lastChat?.stream === stream ? this.#lastChat : undefined;
  }

  #moveSpend(event: EventOf<'spend_earned' | 'spend_paid_out' | 'spend_failed'>): Entry | undefined {
    const moves = spendMoves(event, this.#state.commodities);
    return entryOf(event, spendCategories[event.type], moves, { counterparty: event.data.commitment });
  }

  #quoteOf({ seq, type }: RecordedEvent, digest: string): BookedQuote {
    const quote = this.#quotes.find(digest);
    if (!quote) throw new BooksError(seq, `${type} belongs to a quote that was never issued or is closed`);
    return quote;
  }
}

/** The refunds of a payment by their source, after one more. */
function withRefund(
  { refundedFrom }: BookedPayment,
  { data }: EventOf<'refunded'>,
  source: string,
): Position {
  return new Map([...refundedFrom, [source, (refundedFrom.get(source) ?? 0n) + BigInt(data.amount)]]);
}

/** The atoms for which the credit of a payment was taken back, with one more reversal: of a part, or of all that is left. */
function reversedBy({ data }: EventOf<'credit_reversed'>, payment: BookedPayment): bigint {
  return data.atoms === undefined
    ? atomsOf(payment)
    : (payment.topUp?.reversedAtoms ?? 0n) + BigInt(data.atoms);
}
