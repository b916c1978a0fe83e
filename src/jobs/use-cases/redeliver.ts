import { nameOf, ofPayment, paidCallKey, paymentFromData } from '../../payments/rules/payment.ts';
import type { DecodedPayment } from '../../payments/rules/decode-payment.ts';
import { redeliveryDigest } from '../../payments/rules/payer-signatures.ts';
import { type BindingCheck, checkBinding, termsFromData } from '../../payments/rules/quote.ts';
import { readQuoteToken } from '../../payments/rules/quote-token.ts';
import { foldQuote, paidAmount, type PaymentState, paymentOf } from '../../payments/rules/quote-state.ts';
import { grant } from '../../payments/rules/deliver-or-refund.ts';
import { refundReason } from '../../payments/rules/refund.ts';
import { settlementState } from '../../payments/rules/settlement.ts';
import type { Address, Hex } from '../../base/values/primitives.ts';
import type { LaneCommand } from '../../ledger/store/append-batch.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { paymentKey } from '../../payments/store/claims.ts';
import type { PaymentAnswer } from './answer.ts';
import { keepCallback } from '../../calls/use-cases/callbacks.ts';
import { type CapacityPorts, checkCapacity } from './capacity.ts';
import type { Job } from './catalog.ts';
import type { Tracing } from '../../base/values/tracing.ts';
import type { BoundRequest, PaidRequest } from './job-request.ts';
import { acceptedOnRecord, answerKnownPayment, type KnownPorts } from './known-payment.ts';
import { checkPayerSignature, type SignaturePorts } from '../../payments/use-cases/payer-signature.ts';
import { isQuoteTokenProof } from '../../payments/use-cases/receipt-keys.ts';
import { recordDecision } from '../../payments/use-cases/record-settlement.ts';
import { enqueueFailed, type JobRefusal, refusal } from './refusal.ts';
import { boundInput } from './routes/request-price.ts';
import { append, firstLookMs, keepRequest, requestFacts } from './start-payment.ts';

export interface RedeliveryPorts extends KnownPorts, SignaturePorts, CapacityPorts {
  readonly tracing?: Tracing | undefined;
}

/**
 * Delivers a recovered payment instead of refunding it, if its payer has signed for this very request: the signed payment
 * itself is public since it landed, so it proves nothing about the sender. One append takes the refund that is due off and
 * stores the call: a refund that is started or recorded at the same moment wins or loses.
 */
export async function redeliver(
  context: RedeliveryPorts,
  request: PaidRequest,
  job: Job,
  digest: Hex,
): Promise<PaymentAnswer | JobRefusal> {
  const { decoded } = request;
  const quote = foldQuote((await readStream(context.pool, digest)).events);
  const known = paymentOf(quote, nameOf(decoded));
  if (known?.isRefunded)
    return refusal(request, 'payment_recovered', { digest, details: ['it was refunded'] });
  if (!known || refundReason(known) !== 'recovered') return answerAgain(context, request);
  const bound = await checkLostQuote(context, request, job, known);
  const obstacle =
    obstacleOf(job, known) ??
    (await checkSignature(context, request, decoded, known)) ??
    // only the payer gets it
    (bound.kind === 'broken' ? brokenBindings[bound.reason] : undefined);
  if (obstacle !== undefined) return refusal(request, 'payment_recovered', { digest, details: [obstacle] });
  const full = await checkCapacity(context, request, job, { digest, payer: decoded.payer, hasLanded: true });
  if (full) return full;
  const bodyKeccak256 = bound.kind === 'kept' ? bound.bodyKeccak256 : undefined;
  const { callbackUrl, binding } = request;
  if (callbackUrl !== undefined)
    await keepCallback(context, callbackUrl, { stream: digest, binding }, decoded.payer);
  const command = await redeliveryCommand(context, request, job, decoded, known, bodyKeccak256);
  if (!command) return answerAgain(context, request);
  const appended = await append(context, { ...command, stream: digest, expect: quote.version });
  if (appended.outcome === 'full') return enqueueFailed(job, digest, 'lane_full');
  if (appended.outcome !== 'ok') return answerAgain(context, request);
  request.charge.refund();
  return release(context, decoded, digest, appended.call_id ?? 0);
}

/** Why a job cannot be delivered for a payment, whatever its payer signs; undefined if it can. */
function obstacleOf(job: Job, known: PaymentState): string | undefined {
  const { payment, refunds, refunding } = known;
  if (refunding) return 'its refund is being sent';
  if (refunds.length > 0) return 'a part of the payment was refunded, so the rest of it is refunded as well';
  const { network, asset, pay_to: payTo } = payment;
  const offer = job.options.find((one) => one.network === network && one.asset === asset);
  if (job.restriction || job.isTopUp) return 'this job cannot be delivered for a recovered payment';
  if (offer?.payTo !== payTo) return 'this job is not sold for that token any more';
  return offer.amount > BigInt(paidAmount(known))
    ? `this job costs ${offer.amount} atoms now, more than was paid`
    : undefined;
}

const brokenBindings: Readonly<Record<'requester_mismatch' | 'inputs_hash_mismatch', string>> = {
  requester_mismatch: 'the quote that was paid is only for another payer',
  inputs_hash_mismatch: 'the quote that was paid is only for another body',
};

/**
 * Whether the quote that the payment names may be delivered for this request. The ledger may still have it, and a pricing
 * service's quote stands in the address. A quote that neither shows is bound to nothing that can be checked.
 */
async function checkLostQuote(
  { pool, receiptKeys, log }: RedeliveryPorts,
  request: PaidRequest,
  job: Job,
  { payment }: PaymentState,
): Promise<BindingCheck> {
  const { quoteToken } = request;
  const bound = boundInput(job, request);
  const digest = request.decoded.terms?.quoteDigest;
  if (digest === undefined) return unbound;
  const { quote: recorded } = foldQuote((await readStream(pool, digest)).events);
  if (recorded) return checkBinding(termsFromData(recorded), payment.payer, bound);
  const token = typeof quoteToken === 'string' ? readQuoteToken(quoteToken) : undefined;
  return token?.digest === digest && isQuoteTokenProof(receiptKeys, digest, token.proof, log)
    ? checkBinding(token.quote, payment.payer, bound)
    : unbound;
}

const unbound: BindingCheck = { kind: 'kept', bodyKeccak256: undefined };

/** What is wrong with the payer's signature over the request; undefined if it holds. */
async function checkSignature(
  context: RedeliveryPorts,
  { method, path, bodySha256, redeliverySignature: signature }: BoundRequest,
  { terms }: DecodedPayment,
  { payment }: PaymentState,
): Promise<string | undefined> {
  if (signature === undefined) return 'X-NET-REDELIVERY-SIG is missing';
  const { network, asset, nonce } = paymentFromData(payment);
  const signed = { network, asset, nonce, quoteDigest: terms?.quoteDigest, method, path, bodySha256 };
  const payer = payment.payer as Address;
  const of = { network, payer, digest: redeliveryDigest(signed), signature };
  const { kind } = await checkPayerSignature(context, of);
  switch (kind) {
    case 'signed':
      return undefined;
    case 'malformed':
      return 'X-NET-REDELIVERY-SIG is not a signature in hexadecimal digits with 0x';
    case 'not_signed':
      return "X-NET-REDELIVERY-SIG is not the payer's signature over this request";
    case 'unavailable':
      return "the payer's contract could not be asked about its signature: send the request again";
  }
}

/** Undefined if it is refunded instead. */
async function redeliveryCommand(
  context: RedeliveryPorts,
  request: BoundRequest,
  { serviceId, jobIndex }: Job,
  decoded: DecodedPayment,
  known: PaymentState,
  bodyKeccak256: Hex | undefined,
): Promise<Omit<LaneCommand, 'stream' | 'expect'> | undefined> {
  const paid = paymentFromData(known.payment);
  const data = {
    ...ofPayment(paid),
    service_id: serviceId,
    job_index: jobIndex,
    ...requestFacts(request, bodyKeccak256),
    x402_version: decoded.x402Version,
    ...(decoded.terms?.quoteDigest ? { quote_digest: decoded.terms.quoteDigest } : {}),
    signature: (request.redeliverySignature ?? '').toLowerCase(),
  };
  const granted = grant(known, { kind: 'redeliver', data });
  if (granted.kind === 'refused') return undefined;
  const kept = await keepRequest(context, request);
  const { network, asset, symbol } = paid;
  const key = paymentKey(paid);
  const idempotencyKey = paidCallKey({
    payment: key,
    job: { serviceId, jobIndex },
    bodySha256: request.bodySha256,
  });
  const call = { serviceId, jobIndex, ...kept, network, asset, symbol, caller: undefined, idempotencyKey };
  return {
    events: granted.events,
    call: { op: 'add', ...call, payment: key, delayMs: firstLookMs },
  };
}

/** The second append: from here on the runner may lease the call. The resolver does the same if this process ends before. */
async function release(
  context: RedeliveryPorts,
  decoded: DecodedPayment,
  digest: Hex,
  callId: number,
): Promise<PaymentAnswer> {
  try {
    const quote = foldQuote((await readStream(context.pool, digest)).events);
    const known = paymentOf(quote, nameOf(decoded));
    if (!known) throw new Error('a recovered payment is missing from its stream');
    const started = { digest, version: quote.version, state: settlementState(known, { callId, attempt: 0 }) };
    await recordDecision(context, started, { kind: 'redelivery' });
    context.onCallReleased();
    const current = foldQuote((await readStream(context.pool, digest)).events);
    const delivered = paymentOf(current, nameOf(decoded));
    if (delivered?.call)
      // its signature shows that the payer asks
      return acceptedOnRecord(context, digest, current, delivered, false);
  } catch (error) {
    context.log.error(
      { quote_digest: digest, err: error },
      'a requested delivery could not be finished: the resolver finishes it',
    );
  }
  return { kind: 'pending', digest, replayed: false };
}

/** Something else was recorded meanwhile: a refund, or the delivery for another copy of the request. */
async function answerAgain(
  context: RedeliveryPorts,
  request: PaidRequest,
): Promise<PaymentAnswer | JobRefusal> {
  const known = await answerKnownPayment(context, request);
  if (known.kind === 'answered') return known.answer;
  return refusal(request, known.kind === 'replay' ? 'payment_replay' : 'payment_recovered');
}
