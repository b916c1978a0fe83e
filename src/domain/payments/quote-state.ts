import { type EventData, hasAspect, type RecordedEvent } from '../events/event.ts';
import type { SignedPaymentData } from '../events/payment-events.ts';

/** One payment within a stream. A second one can only follow where the first failed before broadcast. */
export interface PaymentState {
  readonly binding: string;
  readonly bodySha256: string;
  readonly payment: SignedPaymentData;
  readonly startedAt: string;
  readonly status: 'settling' | 'settlement_unknown' | 'settlement_failed' | 'settled';
  /** Why it failed or is unknown: a machine word. */
  readonly reason?: string | undefined;
  /** While it is settled: what was said of it, with the chain's proof where there is one. */
  readonly settled?: Settled | undefined;
  /** Transactions that somebody named for it: places to look, no evidence. */
  readonly hints: readonly string[];
  /** The operator was told that it takes too long. */
  readonly isOverdue: boolean;
  readonly call?: CallState | undefined;
  /** Its money was given back, all of it: it stays settled. */
  readonly refunded?: Refunded | undefined;
}

export interface Refunded {
  /** The stream's version when it was. */
  readonly version: number;
  readonly transaction: string;
  readonly proof: TransferProof;
}

export interface Settled {
  /** The stream's version when it was. */
  readonly version: number;
  readonly transaction: string;
  readonly evidence: EventData<'payment_settled'>['evidence'];
  readonly proof?: TransferProof | undefined;
}

/** Where on the chain the transfer stands. */
export interface TransferProof {
  readonly blockNumber: bigint;
  readonly blockHash: string;
  readonly logIndex: number;
}

export interface CallState {
  readonly callId: number;
  readonly status: 'enqueued' | 'delivered' | 'completed' | 'dead_lettered';
  /** The attempt that completed it: its result is stored under this number. */
  readonly attempt?: number;
}

/** All that a stream tells about its quote: a fold over its events and nothing else. */
export interface QuoteState {
  readonly version: number;
  readonly quote?: EventData<'quote_issued'>;
  /** In the order they were started. */
  readonly payments: readonly PaymentState[];
  /** A caller was refused and no payment was started since. */
  readonly refused: boolean;
}

export const emptyQuoteState: QuoteState = { version: 0, payments: [], refused: false };

export function foldQuote(events: Iterable<RecordedEvent>): QuoteState {
  let story = emptyQuoteState;
  for (const event of events) story = evolve(story, event);
  return story;
}

/** The story after one more event. Pure; events that say nothing about the stream's state only move its version. */
export function evolve(story: QuoteState, event: RecordedEvent): QuoteState {
  const next = { ...story, version: event.version };
  if (!hasAspect(event, 'quoteState')) return next;
  switch (event.type) {
    case 'quote_issued':
      return { ...next, quote: event.data };
    case 'auth_denied':
      return { ...next, refused: true };
    case 'settlement_started':
      return { ...next, refused: false, payments: [...story.payments, startedPayment(event)] };
    case 'settlement_unknown':
      return withPayment(next, event.data, ({ hints }) => ({
        status: 'settlement_unknown',
        reason: event.data.reason,
        hints: withHint(hints, event.data.transaction),
      }));
    case 'settlement_failed':
      return withPayment(next, event.data, () => ({
        status: 'settlement_failed',
        reason: event.data.reason,
      }));
    case 'payment_settled':
      return withPayment(next, event.data, () => ({
        status: 'settled',
        settled: settledBy(event),
      }));
    case 'settlement_confirmed':
      return withPayment(next, event.data, ({ settled }) => ({
        settled: {
          version: settled?.version ?? event.version,
          transaction: event.data.transaction,
          evidence: 'chain',
          proof: proofIn(event.data),
        },
      }));
    case 'settlement_disproved':
      return withPayment(next, event.data, (payment) => ({
        ...unsettled(payment, event.data),
        status: 'settlement_unknown',
        reason: event.data.reason,
      }));
    case 'settlement_reorged':
      return withPayment(next, event.data, (payment) => ({
        ...unsettled(payment, event.data),
        status: 'settling',
      }));
    case 'settlement_overdue':
      return withPayment(next, event.data, () => ({ isOverdue: true }));
    case 'refunded':
      return withPayment(next, event.data, () => ({ refunded: refundedBy(event) }));
    case 'enqueued':
      return withEnqueued(next, event.data);
    case 'operator_requeued':
      return withCall(next, { callId: event.data.call_id, status: 'enqueued' });
    case 'delivered':
      return withCall(next, { callId: event.data.call_id, status: 'delivered' });
    case 'completed':
      return withCall(next, {
        callId: event.data.call_id,
        status: 'completed',
        attempt: event.data.attempt,
      });
    case 'dead_lettered':
      return withCall(next, { callId: event.data.call_id, status: 'dead_lettered' });
  }
}

function startedPayment({ at, data }: Extract<RecordedEvent, { type: 'settlement_started' }>): PaymentState {
  return {
    binding: data.binding,
    bodySha256: data.body_sha256,
    payment: data.payment,
    startedAt: at,
    status: 'settling',
    hints: [],
    isOverdue: false,
  };
}

function withHint(hints: readonly string[], transaction: string | undefined): readonly string[] {
  return transaction === undefined || hints.includes(transaction) ? hints : [...hints, transaction];
}

function settledBy({ version, data }: Extract<RecordedEvent, { type: 'payment_settled' }>): Settled {
  const { transaction, evidence, block_number, block_hash, log_index } = data;
  const isProven = block_number !== undefined && block_hash !== undefined && log_index !== undefined;
  return {
    version,
    transaction,
    evidence,
    ...(isProven ? { proof: proofIn({ block_number, block_hash, log_index }) } : {}),
  };
}

function refundedBy({ version, data }: Extract<RecordedEvent, { type: 'refunded' }>): Refunded {
  return { version, transaction: data.transaction, proof: proofIn(data) };
}

function proofIn(
  data: Pick<EventData<'settlement_confirmed'>, 'block_number' | 'block_hash' | 'log_index'>,
): TransferProof {
  return {
    blockNumber: BigInt(data.block_number),
    blockHash: data.block_hash,
    logIndex: data.log_index,
  };
}

/** A payment whose settlement turned out not to stand: open again, its call with it where no runner has it yet. */
function unsettled(
  payment: PaymentState,
  { transaction, call }: Pick<EventData<'settlement_disproved'>, 'transaction' | 'call'>,
): Pick<PaymentState, 'settled' | 'hints' | 'call'> {
  return {
    settled: undefined,
    hints: withHint(payment.hints, transaction),
    call: call === 'kept' ? payment.call : undefined,
  };
}

function withPayment(
  story: QuoteState,
  of: Pick<EventData<'settlement_failed'>, 'network' | 'asset' | 'payer' | 'payment_nonce'>,
  change: (payment: PaymentState) => Partial<PaymentState>,
): QuoteState {
  const name = { ...of, nonce: of.payment_nonce };
  return {
    ...story,
    payments: story.payments.map((payment) =>
      isNamed(payment, name) ? { ...payment, ...change(payment) } : payment,
    ),
  };
}

/** The call belongs to the settled payment of that nonce that has none yet. */
function withEnqueued(
  story: QuoteState,
  { call_id: callId, payment_nonce: nonce }: EventData<'enqueued'>,
): QuoteState {
  const owner = story.payments.findLast(
    ({ status, payment, call }) => status === 'settled' && payment.nonce === nonce && !call,
  );
  const call: CallState = { callId, status: 'enqueued' };
  return {
    ...story,
    payments: story.payments.map((payment) => (payment === owner ? { ...payment, call } : payment)),
  };
}

function withCall(story: QuoteState, call: CallState): QuoteState {
  return {
    ...story,
    payments: story.payments.map((payment) =>
      payment.call?.callId === call.callId ? { ...payment, call } : payment,
    ),
  };
}

/**
 * The payment that a receipt speaks of: the first that settled and was not refunded, else the first that settled.
 * Undefined where none did; a second one in a stream is one that was believed to have failed and landed late.
 */
export function paidPayment(story: QuoteState): PaymentState | undefined {
  const settled = story.payments.filter(({ status }) => status === 'settled');
  const inOrder = settled.toSorted((a, b) => (a.settled?.version ?? 0) - (b.settled?.version ?? 0));
  return inOrder.find(({ refunded }) => !refunded) ?? inOrder[0];
}

export type ReceiptState =
  | 'quoted'
  | 'authorized'
  | 'settling'
  | 'settlement_unknown'
  | 'settlement_failed'
  | 'settled'
  | 'enqueued'
  | 'delivered'
  | 'completed'
  | 'dead_lettered'
  | 'refused'
  | 'expired'
  | 'refunded';

/** The one word for where a stream stands. `nowSecs` is the database's clock: only expiry needs it. */
export function receiptState(story: QuoteState, nowSecs: number): ReceiptState {
  const last = paidPayment(story) ?? story.payments.at(-1);
  if (last?.refunded && last.status === 'settled') return 'refunded';
  if (last?.call && last.status === 'settled') return last.call.status;
  if (last && last.status !== 'settlement_failed') return last.status;
  if (story.refused) return 'refused';
  if (last) return 'settlement_failed';
  return story.quote && story.quote.expires_at <= nowSecs ? 'expired' : 'quoted';
}

/** Whether money came, refunded or not: null while nobody can know. */
export function isPaid(story: QuoteState): boolean | null {
  if (story.payments.some((payment) => payment.status === 'settled')) return true;
  return story.payments.some((payment) => payment.status !== 'settlement_failed') ? null : false;
}

/** Whether another payment may still take this stream's quote. */
export function isOpen(story: QuoteState, nowSecs: number): boolean {
  return (
    story.quote !== undefined &&
    story.quote.expires_at > nowSecs &&
    story.payments.every((payment) => payment.status === 'settlement_failed')
  );
}

/** A payment by its name; the asset may be open. Plain text, since events are read back as text. */
interface NamedPayment {
  readonly network: string;
  readonly asset: string | undefined;
  readonly payer: string;
  readonly nonce: string;
}

/** The payment of that name within a stream; where the name leaves the asset open, the last one that fits. */
export function paymentOf(story: QuoteState, name: NamedPayment): PaymentState | undefined {
  return story.payments.findLast((payment) => isNamed(payment, name));
}

function isNamed({ payment }: PaymentState, { network, asset, payer, nonce }: NamedPayment): boolean {
  const isOfAsset = asset === undefined || payment.asset === asset;
  return isOfAsset && payment.network === network && payment.payer === payer && payment.nonce === nonce;
}
