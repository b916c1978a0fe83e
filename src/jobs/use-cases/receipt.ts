import type { Config } from '../../base/config/config.ts';
import { paymentSummary } from '../../payments/rules/payment.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { CallState, Refund } from '../../payments/rules/payment-progress.ts';
import {
  foldQuote,
  isPaid,
  jobOf,
  paidPayment,
  type PaymentState,
  receiptState,
} from '../../payments/rules/quote-state.ts';
import { refundRequestState } from '../../payments/rules/refund.ts';
import { findRefundReason } from '../../payments/store/refund-requests.ts';
import { findProgress } from '../../calls/store/call-progress.ts';
import { type CallResult, findDeletion } from '../../calls/store/calls.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { readCallback } from '../../calls/use-cases/read-callback.ts';
import { findRecordedResult } from '../../calls/use-cases/result-file.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';
import type { ReceiptPorts } from './answer.ts';

/** What a receipt is read with. */
export interface ReceiptReader
  extends Pick<Ledger, 'pool' | 'db'>, Pick<ReceiptPorts, 'publicUrl' | 'receiptKeys'> {
  readonly config: Pick<Config, 'callbacks'>;
  /** The ledger's clock, in Unix seconds, where the receipt is read from a replica. Default: the clock of the database that is read. */
  readonly nowSecs?: number | undefined;
}

export type ReceiptReading = NonNullable<Awaited<ReturnType<typeof readReceipt>>>;

/**
 * A quote's receipt, the version of its stream at which it was read, and that event's place in the ledger; `withResult` adds the runner's result. Undefined for an
 * unknown digest.
 */
export async function readReceipt(context: ReceiptReader, digest: Hex, withResult: boolean) {
  const { events, nowSecs: readSecs } = await readStream(context.pool, digest);
  const { nowSecs = readSecs } = context;
  const state = foldQuote(events);
  if (events.length === 0 || (!state.quote && !state.payment)) return undefined;
  const job = jobOf(state);
  const paid = paidPayment(state);
  const receipt = {
    quote_digest: digest,
    state: receiptState(state, nowSecs),
    paid: isPaid(state),
    ...(job ? { service_id: job.serviceId, job_index: job.jobIndex } : {}),
    ...(state.quote ? { quote_expires_at: new Date(state.quote.expires_at * 1_000).toISOString() } : {}),
    ...(paid?.call ? { call_id: paid.call.callId } : {}),
    ...(paid?.settled ? { payment: paymentSummary(paid.payment, paid.settled) } : {}),
    ...(paid && paid.refunds.length > 0 ? { refunds: paid.refunds.map(refundJson) } : {}),
    ...(await requestPart(context, digest, paid, withResult)),
    events: events.map(({ type, at }) => ({ type, at })),
    ...(withResult ? await payersPart(context, digest, paid) : nothing),
  };
  return { receipt, version: state.version, lastSeq: events.at(-1)?.seq ?? 0 };
}

async function requestPart(
  { db }: Pick<ReceiptReader, 'db'>,
  digest: Hex,
  paid: PaymentState | undefined,
  isOpened: boolean,
) {
  const refundRequest = paid && requestJson(paid, isOpened);
  const sha256 = isOpened ? paid?.refundRequest?.reasonSha256 : undefined;
  const reason = sha256 === undefined ? undefined : await findRefundReason(db, digest, sha256);
  return refundRequest && { refund_request: { ...refundRequest, ...(reason !== undefined && { reason }) } };
}

/** What a payer has asked for, without its own words; `isOpened` adds those of the operator. Undefined if it did not ask. */
export function requestJson(payment: PaymentState, isOpened: boolean) {
  const [state, request] = [refundRequestState(payment), payment.refundRequest];
  if (!state || !request) return undefined;
  const { at, decision } = request;
  const why = isOpened && decision?.kind === 'declined' && { why: decision.why };
  return { state, requested_at: at, ...(decision && { decided_at: decision.at }), ...why };
}

function refundJson({ amount, transaction, at }: Refund) {
  return { amount: String(amount), transaction: transaction as Hex, at };
}

const nothing: Partial<Awaited<ReturnType<typeof payersPart>>> = {};

/** What is for those who have the receipt token. */
async function payersPart(context: ReceiptReader, digest: Hex, paid: PaymentState | undefined) {
  return {
    ...(await progressOf(context, paid?.call)),
    ...(await resultOf(context, digest, paid?.call)),
    ...(await callbackOf(context, digest, paid)),
  };
}

/** What the runner last said of a call that it works on. */
async function progressOf({ db }: Pick<ReceiptReader, 'db'>, call: CallState | undefined) {
  // a call that is pushed is `delivered` in the ledger together with its outcome
  const isOpen = call?.status === 'delivered' || call?.status === 'enqueued';
  const progress = isOpen ? await findProgress(db, call.callId) : undefined;
  if (!progress) return {};
  const { fraction, message, at } = progress;
  const said = { ...(fraction !== undefined && { fraction }), ...(message !== undefined && { message }) };
  return { progress: { ...said, at: at.toISOString() } };
}

/** What became of the callback that the paid request named; not asked for if there can be none. */
async function callbackOf(context: ReceiptReader, digest: Hex, paid: PaymentState | undefined) {
  const isAllowed = context.config.callbacks !== undefined;
  const callback = paid && isAllowed ? await readCallback(context, digest, paid) : undefined;
  return callback ? { callback } : {};
}

/** The result, or why there is none any more. */
async function resultOf(
  context: Pick<ReceiptReader, 'db' | 'publicUrl'>,
  digest: Hex,
  call: CallState | undefined,
) {
  const found = await findRecordedResult(context, call);
  switch (found.kind) {
    case 'found':
      return { result: resultJson(context, digest, found.result) };
    case 'none':
      return { result: null };
    case 'altered':
      return { result: null, result_altered: true as const };
    case 'deleted': {
      const deletedAt = await findDeletion(context.db, found.callId, found.attempt);
      const at = deletedAt && { result_pruned_at: deletedAt.toISOString() };
      return { result: null, result_pruned: true as const, ...at };
    }
  }
}

/** A large result is fetched by itself, as bytes. */
function resultJson(
  { publicUrl }: Pick<ReceiptReader, 'publicUrl'>,
  digest: Hex,
  { contentType, body, stored }: CallResult,
) {
  const content_type = contentType ?? null;
  if (!stored) return { content_type, body_base64: body.toString('base64') };
  return { content_type, ...stored, url: `${publicUrl()}/x402/receipts/${digest}/result` };
}
