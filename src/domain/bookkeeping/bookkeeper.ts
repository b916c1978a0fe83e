import { chainAccount, treasuryAccount } from './account.ts';
import { Commodities } from './commodity.ts';
import { creditMoves, spendMoves } from './credit.ts';
import type { Category, Commodity, Entry, Move } from './entry.ts';
import { type BooksEventOf, BooksError } from './event.ts';
import { type BookedPayment, movesBetween, positionOf } from './payment.ts';
import { type BookedQuote, OpenQuotes } from './open-quotes.ts';
import { hasAspect, type RecordedEvent } from '../events/event.ts';

interface PaymentName {
  readonly network: string;
  readonly asset: string;
  readonly payer: string;
  readonly payment_nonce: string;
}

/**
 * Keeps the books: takes a ledger's events in the order of `seq` from the first on, and says what each means in double entry,
 * per commodity. A payment is a liability until it is delivered, then income; one that only a facilitator speaks of stands
 * apart until the chain shows it.
 */
export class Bookkeeper {
  readonly #quotes: OpenQuotes;
  readonly #commodities = new Commodities();
  /** `network/address` of all that was ever to be paid to. */
  readonly #payees = new Set<string>();
  /** The completion that was told of last: what it cost is posted right behind it. */
  #lastChat: { readonly stream: string; readonly model: string } | undefined;

  /** `isReopened`: the quotes that must not be forgotten when they seem done with (see ReopenedQuotes). */
  constructor(isReopened: (digest: string) => boolean) {
    this.#quotes = new OpenQuotes(isReopened);
  }

  /** Quotes that are remembered: the whole of what grows, and it grows with what is open. */
  get openQuotes(): number {
    return this.#quotes.size;
  }

  /** The next event's entry; undefined where no money moves. Throws BooksError where it does not follow from the events before it. */
  post(event: RecordedEvent): Entry | undefined {
    this.#quotes.tick(Date.parse(event.at));
    if (!hasAspect(event, 'bookkeeping')) return undefined;
    switch (event.type) {
      case 'quote_issued': {
        const { service_id, job_index, expires_at } = event.data;
        this.#quotes.issue(event.stream, service_id, job_index, expires_at);
        return undefined;
      }
      case 'settlement_started':
        return this.#start(event);
      case 'settlement_unknown':
      case 'settlement_failed':
        return this.#note(event);
      case 'payment_settled':
      case 'settlement_confirmed':
      case 'settlement_disproved':
      case 'settlement_reorged':
      case 'refunded':
        return this.#movePayment(event);
      case 'enqueued':
        return this.#enqueue(event);
      case 'completed':
      case 'dead_lettered':
      case 'operator_requeued':
        return this.#moveCall(event);
      case 'operator_sweep_recorded':
        return this.#sweep(event);
      case 'credit_topped_up':
      case 'credit_reversed':
        return this.#convert(event);
      case 'credit_granted':
      case 'credit_captured':
      case 'credit_corrected':
      case 'credit_expired':
        return this.#moveCredit(event);
      case 'spend_earned':
      case 'spend_paid_out':
      case 'spend_failed':
        return this.#moveSpend(event);
      case 'chat_completed':
        this.#lastChat = { stream: event.stream, model: event.data.model };
        return undefined;
    }
  }

  #start(event: BooksEventOf<'settlement_started'>): undefined {
    const { payment } = event.data;
    this.#payees.add(`${payment.network}/${payment.pay_to}`);
    const { serviceId, jobIndex, payments } = this.#quoteOf(event, event.stream);
    payments.push({
      serviceId,
      jobIndex,
      token: this.#commodities.token(payment),
      payTo: payment.pay_to,
      payer: payment.payer,
      nonce: payment.nonce,
      atoms: BigInt(payment.amount),
      basis: 'none',
      claim: 'undelivered',
      callId: undefined,
      isCompleted: false,
      hasFailed: false,
      refundedFrom: undefined,
    });
  }

  /** A payment that failed may be forgotten by now: then it is one that nothing more is told of. */
  #note({ type, stream, data }: BooksEventOf<'settlement_unknown' | 'settlement_failed'>): undefined {
    const payment = findPayment(this.#quotes.find(stream), data);
    if (payment) payment.hasFailed = type === 'settlement_failed';
    this.#quotes.settle(stream);
  }

  #movePayment(
    event: BooksEventOf<
      'payment_settled' | 'settlement_confirmed' | 'settlement_disproved' | 'settlement_reorged' | 'refunded'
    >,
  ): Entry | undefined {
    // what was sure and done with is sure still
    if (event.type === 'settlement_confirmed' && !this.#quotes.find(event.stream)) return undefined;
    const quote = this.#quoteOf(event, event.stream);
    const payment = findPayment(quote, event.data);
    if (!payment) throw new BooksError(event.seq, 'it names a payment that was never started');
    switch (event.type) {
      case 'payment_settled': {
        const { evidence, block_number, amount } = event.data;
        const isSure = evidence !== 'facilitator' || block_number !== undefined;
        const isSecond = quote.payments.some((other) => other !== payment && other.basis !== 'none');
        return this.#change(event, 'payment', payment, () => {
          payment.atoms = BigInt(amount);
          payment.basis = isSure ? 'sure' : 'word';
          payment.hasFailed = false;
          if (isSecond && payment.callId === undefined && payment.claim === 'undelivered')
            payment.claim = 'refunds_due';
        });
      }
      case 'settlement_confirmed':
        return this.#change(event, 'confirmation', payment, () => {
          payment.basis = 'sure';
        });
      case 'settlement_disproved':
      case 'settlement_reorged':
        return this.#change(event, 'reversal', payment, () => {
          payment.basis = 'none';
          if (event.data.call === 'kept') return;
          payment.callId = undefined;
          payment.isCompleted = false;
          payment.claim = 'undelivered';
        });
      case 'refunded':
        return this.#change(event, 'refund', payment, () => {
          payment.refundedFrom = this.#holding(payment.token, event.data.refunded_from);
        });
    }
  }

  #enqueue(event: BooksEventOf<'enqueued'>): Entry | undefined {
    const { call_id: callId, payment_nonce: nonce } = event.data;
    const payment = this.#quoteOf(event, event.stream).payments.findLast(
      (one) => one.basis !== 'none' && one.nonce === nonce && one.callId === undefined,
    );
    if (!payment) throw new BooksError(event.seq, 'no settled payment waits for its call');
    return this.#change(event, 'requeue', payment, () => {
      payment.callId = callId;
      payment.claim = 'undelivered';
    });
  }

  #moveCall(event: BooksEventOf<'completed' | 'dead_lettered' | 'operator_requeued'>): Entry | undefined {
    const payment = this.#paymentOfCall(event, event.stream, event.data.call_id);
    const { category, claim } = afterCall[event.type];
    return this.#change(event, category, payment, () => {
      payment.isCompleted = event.type === 'completed';
      if (payment.claim !== 'topped_up') payment.claim = claim;
    });
  }

  /** Credit that was bought: what its payment's token was owed for is converted, or no longer. */
  #convert(event: BooksEventOf<'credit_topped_up' | 'credit_reversed'>): Entry | undefined {
    const { account_id, quote_digest, call_id } = event.data;
    const isTopUp = event.type === 'credit_topped_up';
    const category = isTopUp ? 'top_up' : 'top_up_reversal';
    const credit = creditMoves(event, undefined);
    const payment = this.#paymentOfCall(event, quote_digest, call_id);
    const before = positionOf(payment);
    payment.claim = isTopUp ? 'topped_up' : 'refunds_due';
    const moves = [...movesBetween(before, positionOf(payment), payment.token), ...credit];
    this.#quotes.settle(quote_digest);
    const counterparty = `account:${account_id}`;
    return entryOf(event, category, moves, { counterparty, quoteDigest: quote_digest });
  }

  #sweep(event: BooksEventOf<'operator_sweep_recorded'>): Entry | undefined {
    const { pay_to, swept_to, amount } = event.data;
    const commodity = this.#commodities.token(event.data);
    const [debit, credit] = [this.#holding(commodity, swept_to), chainAccount(commodity, pay_to)];
    const atoms = BigInt(amount);
    const moves = atoms > 0n ? [{ debit, credit, commodity, atoms }] : [];
    return entryOf(event, 'sweep', moves, { counterparty: swept_to });
  }

  /** Where tokens at an address of the operator's stand. */
  #holding(token: Commodity, address: string): string {
    const isPayee = this.#payees.has(`${token.network}/${address}`);
    return isPayee ? chainAccount(token, address) : treasuryAccount(token);
  }

  #moveCredit(
    event: BooksEventOf<'credit_granted' | 'credit_captured' | 'credit_corrected' | 'credit_expired'>,
  ): Entry | undefined {
    const model = this.#lastChat?.stream === event.stream ? this.#lastChat.model : undefined;
    const counterparty = `account:${event.data.account_id}`;
    const moves = creditMoves(event, model);
    return entryOf(event, creditCategories[event.type], moves, { counterparty, memo: model });
  }

  #moveSpend(event: BooksEventOf<'spend_earned' | 'spend_paid_out' | 'spend_failed'>): Entry | undefined {
    const moves = spendMoves(event, this.#commodities);
    return entryOf(event, spendCategories[event.type], moves, { counterparty: event.data.commitment });
  }

  #change(
    event: RecordedEvent,
    category: Category,
    payment: BookedPayment,
    change: () => void,
  ): Entry | undefined {
    const before = positionOf(payment);
    change();
    const moves = movesBetween(before, positionOf(payment), payment.token);
    this.#quotes.settle(event.stream);
    const counterparty = event.type === 'refunded' ? event.data.refunded_to : payment.payer;
    return entryOf(event, category, moves, { counterparty, quoteDigest: event.stream });
  }

  #paymentOfCall(event: RecordedEvent, digest: string, callId: number): BookedPayment {
    const payment = this.#quoteOf(event, digest).payments.find((one) => one.callId === callId);
    if (!payment) throw new BooksError(event.seq, `call ${callId} was never enqueued for this quote`);
    return payment;
  }

  #quoteOf({ seq, type }: RecordedEvent, digest: string): BookedQuote {
    const quote = this.#quotes.find(digest);
    if (!quote) throw new BooksError(seq, `${type} is of a quote that is not there or was done with`);
    return quote;
  }
}

const afterCall = {
  completed: { category: 'delivery', claim: 'delivered' },
  dead_lettered: { category: 'dead_letter', claim: 'refunds_due' },
  operator_requeued: { category: 'requeue', claim: 'undelivered' },
} as const;

const creditCategories = {
  credit_granted: 'credit_grant',
  credit_captured: 'credit_use',
  credit_corrected: 'credit_correction',
  credit_expired: 'credit_expiry',
} as const;

const spendCategories = {
  spend_earned: 'spend_earned',
  spend_paid_out: 'spend_paid_out',
  spend_failed: 'spend_lost',
} as const;

function findPayment(quote: BookedQuote | undefined, name: PaymentName): BookedPayment | undefined {
  return quote?.payments.findLast(
    ({ token, payer, nonce }) =>
      token.network === name.network &&
      token.asset === name.asset &&
      payer === name.payer &&
      nonce === name.payment_nonce,
  );
}

/** What an event can say beside its moves; the ledger does not hold all of it for every type. */
interface Told {
  readonly transaction?: string;
  readonly block_number?: string;
  readonly log_index?: number;
  readonly block_time?: number;
  readonly reason?: string;
}

function entryOf(
  event: RecordedEvent,
  category: Category,
  moves: readonly Move[],
  of: { readonly counterparty?: string; readonly quoteDigest?: string; readonly memo?: string | undefined },
): Entry | undefined {
  if (moves.length === 0) return undefined;
  const told = event.data as Told;
  const { transaction, block_number: block, log_index: logIndex } = told;
  return {
    seq: event.seq,
    event: event.type,
    category,
    recordedAt: event.at,
    occurredAt: block === undefined || category === 'reversal' ? event.at : blockTime(told),
    moves,
    quoteDigest: of.quoteDigest,
    counterparty: of.counterparty,
    transaction,
    block,
    logIndex,
    memo: of.memo ?? told.reason,
  };
}

function blockTime({ block_time: secs }: Told): string | undefined {
  return secs === undefined ? undefined : new Date(secs * 1_000).toISOString();
}
