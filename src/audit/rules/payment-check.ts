import type {
  CallStatus,
  EventDescriptor,
  PaymentStatus,
  Transition,
} from '../../ledger/rules/descriptor.ts';
import { type EventData, eventDescriptors, type LedgerEvent } from '../../ledger/rules/event.ts';
import { readTopUpOrder } from '../../base/values/top-up-order.ts';
import { isSignedByPayer, paymentFromData } from '../../payments/rules/payment.ts';
import { sha256 } from '../../base/values/sha256.ts';
import { fullOptions, inputsHashOf, zeroAddress, zeroHash } from '../../payments/rules/quote.ts';
import { type RecordedOptions, termsDiffer } from '../../payments/rules/quote-terms.ts';

interface Payment {
  readonly name: string;
  /** `claimOf()`. */
  readonly claim: string;
  /** What was signed, and once it is settled what was moved. */
  amount: string;
  /** What was signed, once it is settled. */
  signed?: string;
  /** Of a payment of at most its amount: what its answer has used, which is nothing before it. */
  usedAtoms: bigint | undefined;
  status: PaymentStatus;
  call: CallStatus;
  callId: number;
  refundedAtoms: bigint;
  /** The refund that was started and has not ended. */
  refunding?: Refunding | undefined;
  /** Also after its call was withdrawn. */
  wasEnqueued: boolean;
  /** Its call was given up: it is never delivered or requeued again. */
  isGivenUp?: boolean;
  /** The account that its order names for the credit. */
  creditFor?: number;
  /** What its payer has asked for, and what an operator said; undefined once the call is delivered after that. */
  refundRequest?: 'open' | 'granted' | 'declined' | undefined;
  /** What went wrong with its call, which its payer may want refunded. */
  failure?: 'attempt' | 'answer' | undefined;
  /** Of a recovered payment: whether its payer has signed for a request. */
  redelivery?: 'not_requested' | 'requested';
}

interface Refunding {
  readonly amount: string;
  readonly to: string;
  readonly hasNonce: boolean;
  /** The account that sends it, if it was named. */
  readonly sender: string | undefined;
  readonly notSentBy?: string;
}

type Named = Pick<EventData<'settlement_failed'>, 'network' | 'asset' | 'payer' | 'payment_nonce'>;

/**
 * The state of one quote's stream, as far as it decides which event may follow. Independent of payment-progress.ts on
 * purpose: an error in that state machine must not hide itself here.
 */
export class QuoteCheck {
  version = 1;
  /** The job that was quoted. */
  job = '';
  /** The caller's nonce that the payment being started claims. */
  callerNonce: string | undefined = undefined;
  /** The name of its payment, once that was started. */
  started = '';
  /** The name of its payment, once that got its call. */
  enqueued = '';
  /** The transfers on chains that its payment and refunds claim. */
  transfers: string[] | undefined = undefined;
  /** The payment that was verified last is said to be signed by a contract. */
  isOfContract = false;
  #verified = '';
  /** Who alone may pay it and for what; most quotes are for any. */
  readonly #bound: Pick<EventData<'quote_issued'>, 'requester' | 'inputs_hash'> | undefined;
  #payment: Payment | undefined = undefined;

  readonly #options: RecordedOptions;

  /** @param options those of the quote; shared among quotes with equal ones, since they are kept for each */
  constructor(quote?: EventData<'quote_issued'>, options: RecordedOptions = []) {
    this.#options = options;
    if (!quote) return;
    this.job = `${quote.service_id}/${quote.job_index}`;
    const { requester, inputs_hash } = quote;
    if (requester !== zeroAddress || inputs_hash !== zeroHash) this.#bound = { requester, inputs_hash };
  }

  /** The problem with an event of a stream that has no quote; undefined if it is legal there. */
  static withoutQuote({ type }: LedgerEvent): string | undefined {
    return eventDescriptors[type].transition.of === 'note'
      ? undefined
      : 'it belongs to a quote, but its stream has none before it';
  }

  /** The problem if a payer or a body is not the one that this quote is bound to. */
  breachOf(payer: string, bodyKeccak256: string | undefined): string | undefined {
    if (!this.#bound) return undefined;
    const { requester, inputs_hash: inputsHash } = this.#bound;
    if (requester !== zeroAddress && requester !== payer)
      return `its quote is for ${requester} alone, but ${payer} has paid`;
    return inputsHash === zeroHash || inputsHash === bodyKeccak256
      ? undefined
      : `its quote is for the body with the hash ${inputsHash} alone, but it has ${bodyKeccak256 ?? 'none'}`;
  }

  /** The name of its payment. */
  get paymentName(): string | undefined {
    return this.#payment?.claim;
  }

  /** Whether a call of this quote has a payment with these terms. */
  hasPaid(
    paid: Pick<EventData<'credit_topped_up'>, 'call_id' | 'network' | 'asset' | 'payer' | 'atoms'>,
  ): boolean {
    const payer = `${paid.network}/${paid.asset}/${paid.payer}/`;
    const payment = this.#withCall(paid.call_id);
    return (
      payment !== undefined &&
      payment.call !== 'none' &&
      payment.name.startsWith(payer) &&
      payment.amount === paid.atoms
    );
  }

  /** The only account that may have the credit of a call; undefined if it is that of the payer's wallet. */
  creditFor(callId: number): number | undefined {
    return this.#withCall(callId)?.creditFor;
  }

  /** How many atoms of the payment of a call were refunded. */
  refundedOf(callId: number): bigint {
    return this.#withCall(callId)?.refundedAtoms ?? 0n;
  }

  #withCall(callId: number): Payment | undefined {
    return this.#payment?.callId === callId ? this.#payment : undefined;
  }

  /** Whether this quote sells that credit for that payment. */
  sellsCredit(
    bought: Pick<EventData<'credit_topped_up'>, 'network' | 'asset' | 'atoms' | 'amount_micros'>,
  ): boolean {
    return fullOptions({ options: this.#options }).some(
      ({ network, asset, amount, credit_micros: micros }) =>
        network === bought.network &&
        asset === bought.asset &&
        amount === bought.atoms &&
        micros === bought.amount_micros,
    );
  }

  /** Applies the stream's next event. Returns the problem, or undefined if it is legal. */
  apply(event: LedgerEvent): string | undefined {
    const { transition }: EventDescriptor = eventDescriptors[event.type];
    switch (transition.of) {
      case 'note':
        return undefined;
      case 'quote':
        return 'a quote must be the first event of its stream, and is issued once';
      case 'recovered_payment':
        return this.#recover(event);
      case 'redelivery':
        return this.#requestDelivery(event);
      case 'unpaid_quote':
        return this.#open(event);
      case 'payment':
        return this.#movePayment(event, transition);
      case 'enqueue':
        return this.#enqueue(event);
      case 'call':
        return this.#moveCall(event, transition);
      case 'entity':
      case 'triggered_call':
        return 'it belongs to the stream of another entity, but this is the stream of a quote';
    }
  }

  #open(event: LedgerEvent): string | undefined {
    if (this.#payment)
      return `a payment of this quote is ${this.#payment.status} already: one quote, one payment`;
    if (event.type === 'payment_verified') {
      this.#verified = nameOf(event.data);
      this.isOfContract = event.data.signed_by === 'contract';
      this.callerNonce = undefined;
    }
    if (event.type !== 'settlement_started') return undefined;
    const { payment, body_keccak256: bodyKeccak256 } = event.data;
    const name = nameOf({ ...payment, payment_nonce: payment.nonce });
    if (this.#verified !== name) return 'this payment was not verified before it was started';
    const differing = termsDiffer(this.#options, payment);
    if (differing !== undefined) return `its payment matches no option of its quote: ${differing} differs`;
    if (!this.isOfContract && !isSignedByPayer(paymentFromData(payment)))
      return `its signature is not by ${payment.payer} over these terms`;
    const breach = this.breachOf(payment.payer, bodyKeccak256);
    if (breach !== undefined) return breach;
    const { top_up_order: order } = event.data;
    if (order !== undefined && [event.data.body_sha256, payment.nonce].some((hash) => hash !== sha256(order)))
      return 'its top-up order is not the body that its payer has signed';
    const { accountId: creditFor = 0, units = 1 } = readTopUpOrder(order ?? '') ?? {};
    if (order !== undefined && units > 1 && !this.#isForUnits(order, units, payment.amount))
      return `its order is of ${units} top-ups, but its quote is not for this order alone, or costs no multiple of ${units}`;
    const claim = claimOf(payment.transfer_method, name);
    this.started = claim;
    this.#verified = '';
    const { amount } = payment;
    this.#payment = {
      name,
      claim,
      amount,
      usedAtoms: payment.transfer_method === 'upto' ? 0n : undefined,
      status: event.data.upstream ? 'authorized' : 'settling',
      call: 'none',
      callId: 0,
      refundedAtoms: 0n,
      wasEnqueued: false,
      ...(order === undefined ? {} : { creditFor }),
    };
    return undefined;
  }

  /** Whether this quote's price is that of an order of several units: it is for that order alone, and a multiple. */
  #isForUnits(order: string, units: number, amount: string): boolean {
    return (
      this.#bound?.inputs_hash === inputsHashOf(Buffer.from(order)) && BigInt(amount) % BigInt(units) === 0n
    );
  }

  #recover(event: LedgerEvent): string | undefined {
    if (this.version !== 1) return 'a recovered payment must be the first event of its stream';
    const { amount, ...named } = event.data as EventData<'payment_recovered'>;
    const name = nameOf(named);
    const settled = { amount, status: 'settled', call: 'none', callId: 0, usedAtoms: undefined } as const;
    const names = { name, claim: claimOf(named.transfer_method, name) };
    this.#payment = {
      ...names,
      ...settled,
      refundedAtoms: 0n,
      wasEnqueued: false,
      redelivery: 'not_requested',
    };
    return undefined;
  }

  #requestDelivery(event: LedgerEvent): string | undefined {
    const payment = this.#named(event.data as Named);
    if (payment?.redelivery !== 'not_requested' || payment.refundedAtoms > 0n)
      return 'only a recovered payment that was not refunded can be delivered again, and once';
    if (payment.refunding) return 'its refund is started, so it is not delivered';
    payment.redelivery = 'requested';
    return undefined;
  }

  #movePayment(event: LedgerEvent, { from, to }: Extract<Transition, { of: 'payment' }>): string | undefined {
    const payment = this.#named(event.data as Named);
    if (!payment) return 'it names a payment that was never started: its data were swapped or changed';
    if (!from.includes(payment.status))
      return `the payment is ${payment.status}, which cannot be followed by ${event.type}`;
    if (event.type === 'upstream_answered' || event.type === 'payment_settled') {
      const fault =
        event.type === 'upstream_answered' ? use(payment, event.data) : settle(payment, event.data);
      if (fault !== undefined) return fault;
    }
    if (event.type === 'refunded') return refund(payment, event.data);
    const misstep = moveRequest(payment, event) ?? moveRefund(payment, event);
    if (misstep !== undefined) return misstep;
    if (to) payment.status = to;
    if (
      (event.type === 'settlement_disproved' || event.type === 'settlement_reorged') &&
      event.data.call === 'withdrawn'
    )
      payment.call = 'none';
    return undefined;
  }

  #named(data: Named): Payment | undefined {
    return this.#payment?.name === nameOf(data) ? this.#payment : undefined;
  }

  #enqueue(event: LedgerEvent): string | undefined {
    const { call_id, payment_nonce } = event.data as EventData<'enqueued'>;
    const payment = this.#payment;
    const isWaiting =
      payment?.status === 'settled' &&
      payment.name.endsWith(payment_nonce) &&
      payment.call === 'none' &&
      payment.refundedAtoms === 0n &&
      !payment.refunding &&
      payment.redelivery !== 'not_requested';
    if (!isWaiting) return 'no settled payment of that nonce waits for its call';
    if (payment.usedAtoms !== undefined && BigInt(payment.amount) > payment.usedAtoms)
      return `its payment moved ${payment.amount} atoms, but ${payment.usedAtoms} were used`;
    if ((event.type === 'enqueued_again') !== payment.wasEnqueued)
      return payment.wasEnqueued ? 'its call was enqueued before' : 'its call was never enqueued before';
    payment.wasEnqueued = true;
    payment.isGivenUp = false;
    payment.failure = undefined;
    payment.call = 'enqueued';
    payment.callId = call_id;
    this.enqueued = payment.claim;
    return undefined;
  }

  #moveCall(event: LedgerEvent, { from, to }: Extract<Transition, { of: 'call' }>): string | undefined {
    const { call_id } = event.data as EventData<'operator_requeued'>;
    const payment = this.#withCall(call_id);
    if (!payment || payment.call === 'none') return `call ${call_id} was never enqueued here`;
    if (payment.isGivenUp) return `the call was given up, which cannot be followed by ${event.type}`;
    if (!from.includes(payment.call))
      return `the call is ${payment.call}, which cannot be followed by ${event.type}`;
    if (event.type === 'operator_requeued' && payment.refundedAtoms > 0n)
      return 'its payment was refunded, so the call is no longer paid for';
    if (event.type === 'operator_requeued' && payment.refunding)
      return 'its refund is started, so the call is not delivered';
    if (event.type === 'operator_discarded') payment.isGivenUp = true;
    if (event.type === 'operator_requeued') payment.failure = undefined;
    // a client that left has most of its answer
    if (event.type === 'delivery_failed')
      payment.failure = event.data.reason === 'client_left' ? undefined : 'attempt';
    if (event.type === 'completed') {
      payment.failure = (event.data.http_status ?? 0) >= 400 ? 'answer' : undefined;
      if (payment.refundRequest !== 'declined') payment.refundRequest = undefined;
    }
    if (to) payment.call = to;
    return undefined;
  }
}

/** Applies what an answer has used of a payment of at most its amount. */
function use(payment: Payment, { used }: EventData<'upstream_answered'>): string | undefined {
  if ((used === undefined) !== (payment.usedAtoms === undefined))
    return used === undefined
      ? 'it does not say what was used of the signed amount'
      : 'it says what was used, but its payer signed an exact amount';
  if (used === undefined) return undefined;
  if (used === '0' || BigInt(used) > BigInt(payment.amount))
    return `it uses ${used} atoms, but ${payment.amount} were signed`;
  payment.usedAtoms = BigInt(used);
  return undefined;
}

/** After a reorg a facilitator may move another amount: the last one counts, and is at most what was signed. */
function settle(payment: Payment, { amount }: EventData<'payment_settled'>): string | undefined {
  const { signed = payment.amount } = payment;
  const isExact = payment.usedAtoms === undefined;
  if (isExact ? amount !== signed : amount === '0' || BigInt(amount) > BigInt(signed))
    return `it settles ${amount} atoms, but ${signed} were signed`;
  payment.signed = signed;
  payment.amount = amount;
  return undefined;
}

function refund(payment: Payment, data: EventData<'refunded'>): string | undefined {
  const { amount, payer, refunded_to, evidence } = data;
  const remaining = BigInt(payment.amount) - payment.refundedAtoms;
  if (remaining === 0n) return 'the whole payment was refunded before';
  if (amount === '0' || BigInt(amount) > remaining)
    return `it refunds ${amount} atoms, but ${remaining} of the ${payment.amount} that were moved are left`;
  if ((refunded_to === payer) !== (evidence === undefined))
    return `it refunds ${refunded_to}, and ${payer} has paid: a refund to another address, and no other, has evidence`;
  const { refunding, status } = payment;
  if (!refunding && status !== 'settled') return `the payment is ${status}, and no refund of it is started`;
  if (refunding && (refunding.amount !== amount || refunding.to !== refunded_to))
    return `it refunds ${amount} atoms to ${refunded_to}, but the started refund is of ${refunding.amount} to ${refunding.to}`;
  payment.refunding = undefined;
  payment.refundedAtoms += BigInt(amount);
  return undefined;
}

/** Applies what a payer asks for, and what an operator says. */
function moveRequest(payment: Payment, { type }: LedgerEvent): string | undefined {
  const { call, failure, refundRequest, redelivery, isGivenUp } = payment;
  switch (type) {
    case 'refund_requested': {
      const isOwed = call === 'none' ? redelivery !== 'requested' : call === 'dead_lettered';
      if (refundRequest) return 'its payer has asked for a refund before';
      if (payment.refundedAtoms >= BigInt(payment.amount)) return 'the whole payment was refunded before';
      if (!isOwed && failure !== (call === 'completed' ? 'answer' : 'attempt'))
        return `the call is ${call} and has not failed, so no refund of it is asked for`;
      payment.refundRequest = 'open';
      return undefined;
    }
    case 'refund_request_granted':
    case 'refund_request_declined': {
      if (refundRequest !== 'open') return 'no request of its payer waits for a decision';
      if (call === 'none' || (call === 'dead_lettered' && !isGivenUp))
        return 'its refund is due, so there is nothing to decide';
      if (call !== 'completed' && (type === 'refund_request_granted') !== (isGivenUp === true))
        return isGivenUp ? 'the call was given up' : 'the call may still be delivered';
      payment.refundRequest = type === 'refund_request_granted' ? 'granted' : 'declined';
      return undefined;
    }
    default:
      return undefined;
  }
}

/** Applies a step of a refund before it is recorded. Nothing is delivered between its start and its end. */
function moveRefund(payment: Payment, event: LedgerEvent): string | undefined {
  const { refunding } = payment;
  if (event.type === 'refund_started') {
    const { amount, refund_to: to, payer, sender, sender_nonce: nonce } = event.data;
    const remaining = BigInt(payment.amount) - payment.refundedAtoms;
    if (refunding) return 'another refund of this payment is started';
    const isGranted = payment.call === 'completed' && payment.refundRequest === 'granted';
    if (payment.call !== 'none' && payment.call !== 'dead_lettered' && !isGranted)
      return `the call is ${payment.call}, so no refund of its payment is started`;
    if (payment.call === 'none' && payment.redelivery === 'requested')
      return 'its payer has asked for delivery, so no refund is started';
    if (amount === '0' || BigInt(amount) > remaining)
      return `it starts a refund of ${amount} atoms, but ${remaining} are left`;
    if (to !== payer) return `it starts a refund to ${to}, but ${payer} has paid`;
    payment.refunding = { amount, to, sender, hasNonce: nonce !== undefined };
    return undefined;
  }
  if (event.type !== 'refund_sent' && event.type !== 'refund_not_sent' && event.type !== 'refund_abandoned')
    return undefined;
  if (!refunding) return 'no refund of this payment is started';
  if (event.type === 'refund_sent') {
    const { amount, to, sender, hasNonce } = refunding;
    // the nonce of another account, such as one that sends a Safe's transaction, proves nothing
    const isNamed = event.data.sender_nonce !== undefined && event.data.sender === sender;
    payment.refunding = { amount, to, sender, hasNonce: hasNonce || isNamed };
  } else if (event.type === 'refund_not_sent')
    payment.refunding = { ...refunding, notSentBy: event.data.operator.toLowerCase() };
  else {
    payment.refunding = undefined;
    return breachOfEnd(refunding, event.data);
  }
  return undefined;
}

/** A started refund is given up by the chain's proof, or by two persons. */
function breachOfEnd(
  { notSentBy, hasNonce }: Refunding,
  { proof, operator, block_number: block }: EventData<'refund_abandoned'>,
): string | undefined {
  if (proof === 'operators')
    return notSentBy === undefined || notSentBy === operator.toLowerCase() || block !== undefined
      ? 'two operators have to say that a refund was not sent'
      : undefined;
  return block !== undefined && hasNonce
    ? undefined
    : 'it names no nonce or final block that proves that the refund cannot land';
}

/** Identifies a payment within the ledger: one nonce may be signed for two transfer methods. */
export function claimOf(transferMethod: string, name: string): string {
  return `${transferMethod}/${name}`;
}

/** Names a payment as its events do, without its transfer method. */
export function nameOf({ network, asset, payer, payment_nonce }: Named): string {
  return `${network}/${asset}/${payer}/${payment_nonce}`;
}
