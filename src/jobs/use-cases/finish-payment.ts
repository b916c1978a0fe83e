import { paymentSummary, paymentToData } from '../../payments/rules/payment.ts';
import { foldQuote, paymentOf } from '../../payments/rules/quote-state.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { PaymentAnswer } from './answer.ts';
import type { Job } from './catalog.ts';
import type { JobsContext } from './context.ts';
import type { Landing } from './find-settlement.ts';
import type { BoundRequest } from './job-request.ts';
import { passedOn } from './passed-on.ts';
import { acceptedAnswer } from './known-payment.ts';
import { receiptToken } from './receipt-keys.ts';
import { type JobRefusal, offerRefusal } from './refusal.ts';
import { settlePayment } from './settle-payment.ts';
import { recordOutcome, type RecordedOutcome, type StartedPayment } from './record-settlement.ts';
import { signedReceipt } from './signed-receipt.ts';

/** Steps 7 to 9 once `settlement_started` is on record. Any fault from here on is answered as pending, never as a failure. */
export async function finishPayment(
  context: JobsContext,
  request: BoundRequest,
  job: Job,
  started: StartedPayment & { readonly callId: number },
  landing: Landing,
): Promise<PaymentAnswer | JobRefusal> {
  const { digest } = started;
  const pending: PaymentAnswer = { kind: 'pending', digest, replayed: false };
  const settling =
    landing.kind === 'landed'
      ? recordOutcome(context, started, landing.settlement)
      : settlePayment(context, started, request.client, passedOn(context, request, job));
  context.settling.set(
    digest,
    settling.catch(() => {}),
  );
  try {
    const settled = await settling;
    switch (settled.kind) {
      case 'settled':
        return accepted(context, job, started, settled);
      case 'failed':
      case 'void':
        // nothing was broadcast, and the chain agrees: the payer may sign another
        return offerRefusal(job, 'payment_invalid', settled.reason);
      case 'unknown':
        return pending;
      case 'superseded':
        return await answerOnRecord(context, job, started);
    }
  } catch (error) {
    context.log.error(
      { quote_digest: digest, err: error },
      'a started payment could not be finished: the resolver finishes it',
    );
    return pending;
  } finally {
    context.settling.delete(digest);
  }
}

/** The 202 of a payment that this very request settled. */
function accepted(
  context: JobsContext,
  job: Job,
  { digest, state, callId }: StartedPayment & { readonly callId: number },
  { transaction, at }: Extract<RecordedOutcome, { kind: 'settled' }>,
): PaymentAnswer {
  const { payment } = state;
  const summary = paymentSummary(paymentToData(payment), transaction);
  return {
    kind: 'accepted',
    digest,
    job: { serviceId: job.serviceId, jobIndex: job.jobIndex },
    callId,
    payment: summary,
    x402Version: payment.x402Version,
    receiptToken: receiptToken(context.receiptKeys, digest),
    signedReceipt: signedReceipt(context, job, summary, at),
    replayed: false,
  };
}

/** The answer of a payment whose outcome another process recorded first. */
async function answerOnRecord(
  context: JobsContext,
  job: Job,
  { digest, state: { payment } }: StartedPayment,
): Promise<PaymentAnswer | JobRefusal> {
  const quote = foldQuote((await readStream(context.pool, digest)).events);
  const known = paymentOf(quote, payment);
  switch (known?.status) {
    case 'settled':
      return acceptedAnswer(context, digest, quote, known, false);
    case 'settlement_failed':
      return offerRefusal(job, 'payment_invalid', known.reason ?? 'settlement_failed');
    case 'settling':
    case 'settlement_unknown':
    case undefined:
      return { kind: 'pending', digest, replayed: false };
  }
}
