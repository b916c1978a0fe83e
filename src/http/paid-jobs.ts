import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parseJobId } from '../domain/job.ts';
import { encodeHeader, requirementV2 } from '../domain/x402.ts';
import { refusals } from '../domain/refusal.ts';
import type { JobAnswer, PaymentRequired } from '../gateway/answer.ts';
import { jobUrl } from '../gateway/catalog.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { bindRequest, type JobRequest } from '../gateway/job-request.ts';
import { payForJob } from '../gateway/pay-job.ts';
import { refuse } from '../gateway/refuse.ts';
import { refusalOf, sendError, sendRefusal } from './errors.ts';
import { noteFacts } from './request-log.ts';

interface JobParams {
  readonly service_id: string;
  readonly job_index: string;
}

/** POST /x402/jobs/{service_id}/{job_index}: the paid flow. Bodies are taken as bytes, of any content type. */
export function paidJobRoutes(gateway: Gateway) {
  return async (app: FastifyInstance): Promise<void> => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    app.post<{ Params: JobParams }>(
      '/x402/jobs/:service_id/:job_index',
      {
        errorHandler: (error, request, reply) => void refuseUnread(gateway, error, request, reply),
      },
      async (request, reply) => {
        const answer = await withPatience(gateway, payForJob(gateway, jobRequest(request)));
        return sendAnswer(gateway, request, reply, answer);
      },
    );
  };
}

/** A body over the limit is turned away unread, and that too is written down. */
async function refuseUnread(
  gateway: Gateway,
  error: FastifyError,
  request: PaidRequest,
  reply: FastifyReply,
): Promise<void> {
  const code = refusalOf(error);
  if (code === 'body_too_large') {
    await refuse(gateway, bindRequest(jobRequest(request)), code).catch((fault: unknown) =>
      request.log.error({ err: fault }, 'a refusal could not be written down'),
    );
  }
  sendError(error, request, reply);
}

type PaidRequest = FastifyRequest<{ Params: JobParams }>;

const contentTypeText = /^[!-~][ -~]{0,199}$/;

function jobRequest(request: PaidRequest): JobRequest {
  const { service_id, job_index } = request.params;
  const contentType = request.headers['content-type'];
  const payment = request.headers['payment-signature'];
  return {
    requestId: request.id,
    job: parseJobId(service_id, job_index),
    method: 'POST',
    path: `/x402/jobs/${service_id}/${job_index}`,
    body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
    contentType: contentType !== undefined && contentTypeText.test(contentType) ? contentType : undefined,
    paymentHeader: Array.isArray(payment) ? payment.join(',') : payment,
    clientAddress: request.ip,
  };
}

const patienceMs = 5_000;

/**
 * The flow goes on whatever happens to its client; only the answer gives up, once the ledger has been away for a while.
 * The same request, sent again, gets the outcome.
 */
async function withPatience(gateway: Gateway, flow: Promise<JobAnswer>): Promise<JobAnswer> {
  let timer: NodeJS.Timeout | undefined;
  const impatience = new Promise<JobAnswer>((resolve) => {
    timer = setInterval(() => {
      const { brokenSince } = gateway.lane.state;
      if (brokenSince === undefined || Date.now() - brokenSince < patienceMs) return;
      resolve({ kind: 'refused', code: 'ledger_unavailable', retryAfterSecs: 2 });
    }, 250);
  });
  // a flow that fails after its answer was given up must not become an unhandled rejection
  flow.catch((error: unknown) => gateway.log.error({ err: error }, 'a paid flow failed'));
  try {
    return await Promise.race([flow, impatience]);
  } finally {
    clearInterval(timer);
  }
}

function sendAnswer(gateway: Gateway, request: FastifyRequest, reply: FastifyReply, answer: JobAnswer) {
  switch (answer.kind) {
    case 'accepted':
      return sendAccepted(gateway, request, reply, answer);
    case 'payment_required':
      return sendPaymentRequired(gateway, request, reply, answer);
    case 'pending': {
      noteFacts(request, { quote_digest: answer.digest });
      if (answer.replayed) reply.header('idempotent-replayed', 'true');
      const context = { quote_digest: answer.digest, receipt_url: receiptUrl(gateway, answer.digest) };
      return sendRefusal(request, reply, 'settlement_pending', { retryAfterSecs: 2, context });
    }
    case 'refused':
      return sendRefusal(request, reply, answer.code, answer);
  }
}

function sendAccepted(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Extract<JobAnswer, { kind: 'accepted' }>,
) {
  const { digest, callId, job, payment, receiptToken } = answer;
  noteFacts(request, { quote_digest: digest, call_id: callId });
  if (answer.replayed) reply.header('idempotent-replayed', 'true');
  const { transaction, network, payer } = payment;
  return reply
    .code(202)
    .header('location', `/x402/receipts/${digest}`)
    .header('cache-control', 'no-store')
    .header('payment-response', encodeHeader({ success: true, transaction, network, payer }))
    .send({
      status: 'accepted',
      receipt: digest,
      quote_digest: digest,
      ...(receiptToken ? { receipt_token: receiptToken } : {}),
      receipt_url: receiptUrl(gateway, digest),
      call_id: callId,
      service_id: job.serviceId,
      job_index: job.jobIndex,
      payment,
    });
}

/** The 402: version 2 in the header, where its clients look first, and the same offers with our code in the body. */
function sendPaymentRequired(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
  { code, reason, quote }: PaymentRequired,
) {
  const { digest, expiresAt, options } = quote;
  noteFacts(request, { quote_digest: digest, code });
  const error = reason === undefined ? refusals[code].sentence : `${refusals[code].sentence} (${reason})`;
  const required = {
    x402Version: 2,
    error,
    resource: {
      url: jobUrl(gateway.publicUrl(), quote),
      description: `Job ${quote.serviceId}/${quote.jobIndex}`,
    },
    accepts: options.map((option) => requirementV2(option, digest, gateway.x402.maxTimeoutSecs)),
  };
  return reply
    .code(402)
    .header('payment-required', encodeHeader(required))
    .header('cache-control', 'no-store')
    .send({
      ...required,
      code,
      ...(reason === undefined ? {} : { reason }),
      quote_digest: digest,
      quote_expires_at: new Date(expiresAt * 1_000).toISOString(),
    });
}

function receiptUrl(gateway: Gateway, digest: string): string {
  return `${gateway.publicUrl()}/x402/receipts/${digest}`;
}
