import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parseJobId } from '../../domain/payments/job.ts';
import type { Caip2 } from '../../domain/values/primitives.ts';
import { offeredExtensions } from '../../domain/payments/payment-identifier.ts';
import { encodeHeader, requirementV2 } from '../../domain/payments/x402.ts';
import { requirementsV1, v1NameOf } from '../../domain/payments/x402-v1.ts';
import { refusals } from '../../domain/errors/refusal.ts';
import type { JobAnswer, PaymentRequired, Refused } from '../../jobs/answer.ts';
import { jobUrl } from '../../jobs/catalog.ts';
import type { JobsContext } from '../../jobs/context.ts';
import { dryRun } from '../../jobs/dry-run.ts';
import type { JobRequest } from '../../jobs/job-request.ts';
import { sendDryRun } from './dry-run.ts';
import { isOffered } from '../../jobs/check-request.ts';
import { payForJob, refuseUnreadBody } from '../../jobs/pay-job.ts';
import { refusalOf, sendError, sendRefusal } from '../server/errors.ts';
import { limitInFlight } from '../server/in-flight.ts';
import { createWaitLimit, type WaitLimit } from '../server/wait-limit.ts';
import { noteFacts } from '../server/request-log.ts';
import type { Accepted } from '../schemas/job.ts';

interface JobParams {
  readonly service_id: string;
  readonly job_index: string;
}

const ledgerUnavailable: Refused = { kind: 'refused', code: 'ledger_unavailable' };

/** POST /x402/jobs/{service_id}/{job_index}: the paid flow. Bodies are taken as bytes, of any content type. */
export function paidJobRoutes(current: () => JobsContext) {
  return async (app: FastifyInstance): Promise<void> => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    const { lane, log, config } = current();
    const waitLimit = createWaitLimit({ lane, log, refused: ledgerUnavailable });
    app.addHook('onClose', async () => waitLimit.end());
    app.addHook('onRequest', async (request, reply) => {
      if (lane.state.halt) return sendRefusal(request, reply, 'ledger_inconsistent');
    });
    const inFlight = limitInFlight(app, config.limits.maxInFlightRequests, (request, reply) =>
      sendRefusal(request, reply, 'overloaded'),
    );
    app.post<{ Params: JobParams }>(
      '/x402/jobs/:service_id/:job_index',
      {
        // a payment may be known although its job is no longer sold: its body is read
        onRequest: async (request, reply) => {
          const context = current();
          const incoming = jobRequest(request);
          if (incoming.payment || isOffered(context, incoming)) return;
          return sendAnswer(
            context,
            request,
            reply,
            await waitLimit.within(refuseUnreadBody(context, incoming)),
          );
        },
        errorHandler: (error, request, reply) =>
          void refuseUnreadRequest(current(), waitLimit, error, request, reply),
      },
      async (request, reply) => {
        // one configuration for the whole request, even if another is loaded meanwhile
        const context = current();
        const flow = payForJob(context, jobRequest(request));
        inFlight.keep(request, flow);
        const answer = await waitLimit.within(flow);
        return sendAnswer(context, request, reply, answer);
      },
    );
    app.post<{ Params: JobParams }>(
      '/x402/jobs/:service_id/:job_index/auth-dry-run',
      {
        onRequest: async (request, reply) => {
          const context = current();
          const incoming = jobRequest(request);
          if (!isOffered(context, incoming))
            return sendDryRun(request, reply, await dryRun(context, incoming));
        },
      },
      async (request, reply) => {
        const context = current();
        const run = await dryRun(context, jobRequest(request));
        return sendDryRun(request, reply, run);
      },
    );
  };
}

/** Handles what the body parser throws: a body over the limit is refused like any other request. */
async function refuseUnreadRequest(
  context: JobsContext,
  waitLimit: WaitLimit<Refused>,
  error: FastifyError,
  request: PaidRequest,
  reply: FastifyReply,
): Promise<void> {
  if (refusalOf(error) !== 'body_too_large') return void sendError(error, request, reply);
  try {
    const answer = await waitLimit.within(refuseUnreadBody(context, jobRequest(request)));
    sendAnswer(context, request, reply, answer);
  } catch (fault) {
    sendError(fault instanceof Error ? fault : new Error(String(fault)), request, reply);
  }
}

type PaidRequest = FastifyRequest<{ Params: JobParams }>;

function jobRequest(request: PaidRequest): JobRequest {
  const { service_id, job_index } = request.params;
  const contentType = request.headers['content-type'];
  return {
    requestId: request.id,
    job: parseJobId(service_id, job_index),
    method: 'POST',
    path: `/x402/jobs/${service_id}/${job_index}`,
    body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
    contentType,
    payment: paymentOf(request.headers),
    callerHeaders: callerHeadersOf(request.headers),
    clientAddress: request.ip,
  };
}

/** A repeated header arrives joined by commas, which no valid value contains. */
function callerHeadersOf(headers: FastifyRequest['headers']): JobRequest['callerHeaders'] {
  const text = (name: string): string | undefined => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(',') : value;
  };
  return {
    caller: text('x-net-caller'),
    signature: text('x-net-caller-sig'),
    nonce: text('x-net-caller-nonce'),
    expiry: text('x-net-caller-expiry'),
  };
}

/** The payment header, if there is one. A version 2 header takes precedence over a version 1 header. */
function paymentOf(headers: FastifyRequest['headers']): JobRequest['payment'] {
  const v2 = headers['payment-signature'];
  if (v2 !== undefined) return { header: String(v2), x402Version: 2 };
  const v1 = headers['x-payment'];
  return v1 === undefined ? undefined : { header: String(v1), x402Version: 1 };
}

function sendAnswer(context: JobsContext, request: FastifyRequest, reply: FastifyReply, answer: JobAnswer) {
  switch (answer.kind) {
    case 'accepted':
      return sendAccepted(context, request, reply, answer);
    case 'payment_required':
      return sendPaymentRequired(context, request, reply, answer);
    case 'pending': {
      noteFacts(request, { quote_digest: answer.digest });
      if (answer.replayed) reply.header('idempotent-replayed', 'true');
      const facts = { quote_digest: answer.digest, receipt_url: receiptUrl(context, answer.digest) };
      return sendRefusal(request, reply, 'settlement_pending', { context: facts });
    }
    case 'refused':
      return sendRefusal(request, reply, answer.code, {
        ...answer,
        ...(answer.details ? { context: { details: answer.details } } : {}),
      });
  }
}

function sendAccepted(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Extract<JobAnswer, { kind: 'accepted' }>,
) {
  const { digest, callId, job, payment, receiptToken } = answer;
  noteFacts(request, { quote_digest: digest, call_id: callId });
  if (answer.replayed) reply.header('idempotent-replayed', 'true');
  const { transaction, payer } = payment;
  const isV1 = answer.x402Version === 1;
  const body: Accepted = {
    status: 'accepted',
    receipt: digest,
    quote_digest: digest,
    ...(receiptToken ? { receipt_token: receiptToken } : {}),
    receipt_url: receiptUrl(context, digest),
    call_id: callId,
    service_id: job.serviceId,
    job_index: job.jobIndex,
    payment,
  };
  const network = (isV1 && v1NameOf(payment.network as Caip2)) || payment.network;
  return reply
    .code(202)
    .header('location', `/x402/receipts/${digest}`)
    .header('cache-control', 'no-store')
    .header(
      isV1 ? 'x-payment-response' : 'payment-response',
      encodeHeader({ success: true, transaction, network, payer }),
    )
    .send(body);
}

/** The 402: version 2 in the header, version 1 in the body, where their clients look for them. */
function sendPaymentRequired(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { code, reason, quote }: PaymentRequired,
) {
  const { digest, expiresAt, options, input } = quote;
  const { maxTimeoutSecs, paymentIdentifier } = context.settings;
  noteFacts(request, { quote_digest: digest, code });
  const error = reason === undefined ? refusals[code].sentence : `${refusals[code].sentence} (${reason})`;
  const resource = {
    url: jobUrl(context.publicUrl(), quote),
    description: `Job ${quote.serviceId}/${quote.jobIndex}`,
    mimeType: 'application/json',
  };
  const accepts = options.map((option) => requirementV2(option, digest, maxTimeoutSecs));
  return reply
    .code(402)
    .header(
      'payment-required',
      encodeHeader({
        x402Version: 2,
        error,
        resource,
        accepts,
        extensions: offeredExtensions(paymentIdentifier),
      }),
    )
    .header('cache-control', 'no-store')
    .send({
      x402Version: 1,
      error,
      accepts: requirementsV1(options, resource, maxTimeoutSecs),
      code,
      ...(reason === undefined ? {} : { reason }),
      quote_digest: digest,
      quote_expires_at: new Date(expiresAt * 1_000).toISOString(),
      ...(input ? { input } : {}),
    });
}

function receiptUrl(context: JobsContext, digest: string): string {
  return `${context.publicUrl()}/x402/receipts/${digest}`;
}
