import { failureOf, grant, type WishRefusal } from '../../payments/rules/deliver-or-refund.ts';
import { refundRequestTypedData } from '../../payments/rules/payer-signatures.ts';
import { paymentFromData } from '../../payments/rules/payment.ts';
import { foldQuote, paidPayment, type PaymentState } from '../../payments/rules/quote-state.ts';
import { putRefundReason } from '../../payments/store/refund-requests.ts';
import { checkPayerSignature, type SignaturePorts } from '../../payments/use-cases/payer-signature.ts';
import { hashTypedData } from 'viem/utils';
import type { RefusalCode } from '../../base/errors/refusal.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { sha256 } from '../../base/values/sha256.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { JobsContext } from './context.ts';
import { requestJson } from './receipt.ts';

export type RefundRequestAnswer =
  | { readonly kind: 'requested'; readonly refundRequest: NonNullable<ReturnType<typeof requestJson>> }
  | { readonly kind: 'refused'; readonly code: RefusalCode };

/**
 * Records that the payer of a payment asks for its refund. Only the payer's signature over the reason gets an answer about the payment. The
 * same request again gets the present state of the first one.
 */
export async function requestRefund(
  context: SignaturePorts & Pick<JobsContext, 'pool' | 'lane'>,
  digest: Hex,
  asked: { readonly reason: string; readonly signature: string },
): Promise<RefundRequestAnswer> {
  const { reason, signature } = asked;
  const known = paidPayment(foldQuote((await readStream(context.pool, digest)).events));
  if (!known) return refuse('receipt_not_found');
  const { network, payer, nonce } = paymentFromData(known.payment);
  const signed = hashTypedData(refundRequestTypedData({ network, quoteDigest: digest, reason }));
  const { kind } = await checkPayerSignature(context, { network, payer, digest: signed, signature });
  if (kind === 'unavailable') return refuse('payer_signature_unchecked');
  if (kind !== 'signed') return refuse('invalid_payer_signature');
  return record(context, digest, { payer, nonce, ...asked });
}

interface SignedRequest {
  readonly payer: string;
  readonly nonce: Hex;
  readonly reason: string;
  readonly signature: string;
}

async function record(
  context: Pick<JobsContext, 'pool' | 'lane'>,
  digest: Hex,
  request: SignedRequest,
): Promise<RefundRequestAnswer> {
  const { payer, nonce, reason, signature } = request;
  const { events } = await readStream(context.pool, digest);
  const quote = foldQuote(events);
  const known = paidPayment(quote);
  // taken back meanwhile
  if (known?.payment.nonce !== nonce) return refuse('receipt_not_found');
  const data = { reason_sha256: sha256(reason), signature: signature.toLowerCase() };
  const granted = grant(known, { kind: 'request_refund', data, failure: failureOf(events) });
  if (granted.kind === 'refused') return refuse(codes[granted.why.kind]);
  if (granted.events.length === 0) return requested(known);
  await putRefundReason(context.pool, digest, payer, reason);
  const { outcome } = await context.lane.append({
    stream: digest,
    expect: quote.version,
    events: granted.events,
  });
  // whatever was recorded meanwhile, or this very request, is answered as it is now
  if (outcome === 'ok' || outcome === 'stale') return record(context, digest, request);
  throw new Error(`a request for a refund could not be recorded: ${outcome}`);
}

function requested(payment: PaymentState): RefundRequestAnswer {
  const refundRequest = requestJson(payment, false);
  if (!refundRequest) throw new Error('a request for a refund is missing from its payment');
  return { kind: 'requested', refundRequest };
}

function refuse(code: RefusalCode): RefundRequestAnswer {
  return { kind: 'refused', code };
}

const codes: Readonly<Record<WishRefusal['kind'], RefusalCode>> = {
  unpaid: 'receipt_not_found',
  refunded: 'refunded_before',
  call_open: 'refund_not_failed',
  delivered: 'refund_delivered',
  requested_before: 'refund_requested_before',
  // never said of a request
  refund_under_way: 'internal_error',
  not_started: 'internal_error',
  said_before: 'internal_error',
  not_requested: 'internal_error',
  refund_due: 'internal_error',
};
