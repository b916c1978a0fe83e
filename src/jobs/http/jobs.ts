import type { IncomingMessage } from 'node:http';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parseJobId } from '../../base/values/job.ts';
import { offerReceiptKey, receiptEntry } from '../../payments/rules/offer-receipt.ts';
import { quoteTokenParameter } from '../../payments/rules/quote-token.ts';
import type { Caip2, Hex } from '../../base/values/primitives.ts';
import { encodeHeader } from '../../payments/rules/x402.ts';
import { v1NameOf } from '../../payments/rules/x402-v1.ts';
import type { JobAnswer, Refused } from '../use-cases/answer.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { callbackSecretText } from '../../calls/use-cases/read-callback.ts';
import { dryRun, refuseDryRunByHead, type DryRun } from '../use-cases/dry-run.ts';
import { type JobHead, type OpenedRequest, openRequest } from '../use-cases/job-request.ts';
import { sendPaymentRequired } from './payment-required.ts';
import { payForJob, refuseByHead, refuseUnreadBody } from '../use-cases/pay-job.ts';
import { createRequestField } from '../../base/http/request-field.ts';
import { addressOf, declaredBytesOf } from '../../base/http/request-values.ts';
import { refusalOf, sendError, sendRefusal } from '../../ledger/http/errors.ts';
import { limitInFlight } from '../../base/http/in-flight.ts';
import type { RequestBodies } from '../../base/http/request-bodies.ts';
import { createWaitLimit } from '../../ledger/http/wait-limit.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import type { WaitPlaces } from '../../base/http/wait-places.ts';
import type { Accepted, Completed, Replayed } from './schemas/job.ts';
import { awaitReceipt, maxWaitSecs } from '../use-cases/follow-receipt.ts';
import type { ReceiptReading } from '../use-cases/receipt.ts';
import { createSharedReads } from '../../base/runtime/shared-reads.ts';
import { leftSignal } from '../../base/http/left-signal.ts';

type AcceptedAnswer = Extract<JobAnswer, { kind: 'accepted' }>;

interface JobParams {
  readonly service_id: string;
  readonly job_index: string;
}

const ledgerUnavailable: Refused = { kind: 'refused', code: 'ledger_unavailable' };

/** Memory per byte of a job's body: its pieces and the whole, or the whole and what is parsed from it for its check. */
const workFactor = 2;

/** A request whose head was taken. One configuration for the whole request, even if another is loaded meanwhile. */
interface Opened {
  readonly context: JobsContext;
  readonly request: OpenedRequest;
}

const openedField = createRequestField<Opened>('openedJob');

/**
 * POST /x402/jobs/{service_id}/{job_index}: the paid flow, and its dry run. Bodies are taken as bytes, of any content type. What
 * the headers alone refuse is answered before the body is read.
 */
export function paidJobRoutes(current: () => JobsContext, bodies: RequestBodies, places: WaitPlaces) {
  return async (app: FastifyInstance): Promise<void> => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage) =>
      bodies.read(request, payload, { maxBytes: request.routeOptions.bodyLimit, workFactor }),
    );
    const { lane, log, config } = current();
    const waitLimit = createWaitLimit({ lane, log, refused: ledgerUnavailable });
    app.addHook('onClose', async () => waitLimit.end());
    // first of all: neither a peer nor the ledger is asked
    app.addHook('onRequest', (request, reply, done) => {
      if (lane.state.halt) sendRefusal(request, reply, 'ledger_inconsistent');
      else done();
    });
    const inFlight = limitInFlight(
      app,
      config.limits.maxInFlightRequests,
      (request, reply) => sendRefusal(request, reply, 'overloaded', { reason: 'max_in_flight_requests' }),
      bodies.release,
    );
    openedField.addTo(app);
    const open = (request: PaidRequest): Opened => {
      const context = current();
      const both = { context, request: openRequest(context, jobHead(request)) };
      openedField.set(request, both);
      return both;
    };
    const answerFlow = async (request: PaidRequest, reply: FastifyReply, flow: Promise<JobAnswer>) => {
      inFlight.keep(request, flow);
      const { context } = openedOf(request);
      const answer = await waitLimit.within(flow);
      if (answer.kind !== 'accepted') return sendAnswer(context, request, reply, answer);
      // paid and on record: while it waits for its result it takes neither memory nor a place of other requests
      request.body = undefined;
      inFlight.release(request);
      const wait =
        request.headers['prefer'] === undefined
          ? undefined
          : await waitAsPreferred(context, request, reply, answer.digest, places);
      return sendAccepted(context, request, reply, answer, wait);
    };
    /** Handles what reading the body throws: a body over the limit is refused like any other request. */
    const refuseUnread = async (
      error: FastifyError,
      request: PaidRequest,
      reply: FastifyReply,
    ): Promise<void> => {
      if (refusalOf(error) !== 'body_too_large') return void sendError(error, request, reply);
      try {
        const { context, request: head } = openedOf(request);
        await answerFlow(request, reply, refuseUnreadBody(context, head));
      } catch (fault) {
        sendError(fault instanceof Error ? fault : new Error(String(fault)), request, reply);
      }
    };

    app.post<JobRoute>(
      '/x402/jobs/:service_id/:job_index',
      {
        errorHandler: (error, request, reply) => void refuseUnread(error, request, reply),
        onRequest: (request, reply, done) => {
          const { context, request: head } = open(request);
          // a payment may be known already, and is then answered from its own state, which takes the body
          const refused = head.sent.kind === 'decoded' ? undefined : refuseByHead(context, head);
          if (refused) return answerFlow(request, reply, refused);
          done();
        },
      },
      (request, reply) => {
        const { context, request: head } = openedOf(request);
        return answerFlow(request, reply, payForJob(context, head, bodyOf(request)));
      },
    );
    app.post<JobRoute>(
      '/x402/jobs/:service_id/:job_index/auth-dry-run',
      {
        onRequest: async (request, reply) => {
          const { context, request: head } = open(request);
          const refused = refuseDryRunByHead(context, head);
          if (refused) return sendDryRun(request, reply, refused);
        },
      },
      async (request, reply) => {
        const { context, request: head } = openedOf(request);
        return sendDryRun(request, reply, await dryRun(context, head, bodyOf(request)));
      },
    );
  };
}

function openedOf(request: FastifyRequest): Opened {
  const opened = openedField.of(request);
  if (!opened) throw new Error('a job request was not opened');
  return opened;
}

/** A repeated parameter is a list. */
type JobQuery = Readonly<Record<string, string | readonly string[] | undefined>>;

interface JobRoute {
  readonly Params: JobParams;
  readonly Querystring: JobQuery;
}

type PaidRequest = FastifyRequest<JobRoute>;

function bodyOf({ body }: FastifyRequest): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

function jobHead(request: PaidRequest): JobHead {
  const { service_id, job_index } = request.params;
  const contentType = request.headers['content-type'];
  const payment = paymentOf(request.headers);
  return {
    requestId: request.id,
    job: parseJobId(service_id, job_index),
    method: 'POST',
    path: `/x402/jobs/${service_id}/${job_index}`,
    contentType,
    declaredBytes: declaredBytesOf(request.headers),
    payment,
    quoteToken: request.query[quoteTokenParameter],
    callerHeaders: callerHeadersOf(request.headers),
    headers: request.headers,
    redeliverySignature: request.headers['x-net-redelivery-sig']?.toString(),
    callbackUrl: request.headers['x-net-callback-url']?.toString(),
    clientAddress: addressOf(request),
  };
}

/** A repeated header arrives joined by commas, which no valid value contains. */
function callerHeadersOf(headers: FastifyRequest['headers']): JobHead['callerHeaders'] {
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
function paymentOf(headers: FastifyRequest['headers']): JobHead['payment'] {
  const v2 = headers['payment-signature'];
  if (v2 !== undefined) return { header: String(v2), x402Version: 2 };
  const v1 = headers['x-payment'];
  return v1 === undefined ? undefined : { header: String(v1), x402Version: 1 };
}

function sendAnswer(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Exclude<JobAnswer, AcceptedAnswer>,
) {
  switch (answer.kind) {
    case 'unproven': {
      reply.header('idempotent-replayed', 'true').header('cache-control', 'no-store');
      if (answer.status === 'pending') return sendRefusal(request, reply, 'settlement_pending');
      const body: Replayed = { status: answer.status };
      return reply.code(202).send(body);
    }
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

/** 202; or 200 with the result, where the call was completed while the client preferred to wait. */
function sendAccepted(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: AcceptedAnswer,
  wait: PreferredWait | undefined,
) {
  const { digest, callId, job, payment, receiptToken, signedReceipt } = answer;
  noteFacts(request, { quote_digest: digest, call_id: callId });
  if (answer.replayed) reply.header('idempotent-replayed', 'true');
  const { transaction, payer } = payment;
  const isV1 = answer.x402Version === 1;
  const body: Accepted = {
    status: 'accepted',
    receipt: digest,
    quote_digest: digest,
    receipt_token: receiptToken,
    receipt_url: receiptUrl(context, digest),
    call_id: callId,
    service_id: job.serviceId,
    job_index: job.jobIndex,
    payment,
    ...(request.headers['x-net-callback-url'] === undefined
      ? {}
      : { callback_secret: callbackSecretText(context.receiptKeys, digest) }),
  };
  const completed: Completed | undefined = wait?.completed && {
    ...body,
    status: 'completed',
    result: wait.completed.result ?? null,
  };
  const network = (isV1 && v1NameOf(payment.network as Caip2)) || payment.network;
  const extensions = signedReceipt && { extensions: { [offerReceiptKey]: receiptEntry(signedReceipt) } };
  if (wait) reply.header('preference-applied', `wait=${wait.waitSecs}`);
  return reply
    .code(completed ? 200 : 202)
    .header('location', `/x402/receipts/${digest}`)
    .header('cache-control', 'no-store')
    .header(
      isV1 ? 'x-payment-response' : 'payment-response',
      encodeHeader({ success: true, transaction, network, payer, ...extensions }),
    )
    .send(completed ?? body);
}

function receiptUrl(context: JobsContext, digest: string): string {
  return `${context.publicUrl()}/x402/receipts/${digest}`;
}

/**
 * A dry run as JSON: 200 if the call would be allowed, else the paid flow's status and code, with the same checks. Its 402
 * offers nothing: it is about the caller, not about money.
 */
function sendDryRun(
  request: FastifyRequest<{ Params: { service_id: string; job_index: string } }>,
  reply: FastifyReply,
  { verdict, mode, isEnabled, authMode, caller, isAsserted, checks }: DryRun,
): FastifyReply {
  const job = parseJobId(request.params.service_id, request.params.job_index);
  const context = {
    allowed: verdict.kind === 'allowed',
    enabled: isEnabled,
    ...(mode ? { mode } : {}),
    ...(authMode ? { auth_mode: authMode } : {}),
    ...(caller ? { caller } : {}),
    ...(isAsserted ? { asserted: true } : {}),
    checks: checks.map(({ name, result, detail }) => ({
      name,
      passed: result.kind === 'passed',
      detail,
    })),
    ...(job ? { service_id: job.serviceId, job_index: job.jobIndex } : {}),
  };
  reply.header('cache-control', 'no-store');
  if (verdict.kind === 'allowed') return reply.send(context);
  const { code, retryAfterSecs } = verdict;
  return sendRefusal(request, reply, code, {
    context,
    ...(retryAfterSecs === undefined ? {} : { retryAfterSecs }),
  });
}

/** What a request's `Prefer: wait` led to. */
interface PreferredWait {
  /** How long the gateway would have waited, in seconds. */
  readonly waitSecs: number;
  /** The receipt with the result; undefined where the call was not completed in time. */
  readonly completed: ReceiptReading['receipt'] | undefined;
}

/**
 * Waits for the result of a paid call as long as its client prefers (RFC 7240), which the client must have shown to be its own.
 * Undefined where it prefers nothing, or where no place to wait is free: a paid request is never refused for that.
 */
async function waitAsPreferred(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  digest: Hex,
  places: WaitPlaces,
): Promise<PreferredWait | undefined> {
  const waitSecs = preferredWaitSecs(request.headers['prefer']);
  const leave = waitSecs > 0 ? places.take(addressOf(request)) : undefined;
  if (!leave) return undefined;
  try {
    const reading = await awaitReceipt(context, {
      digest,
      withResult: true,
      waitSecs,
      signal: leftSignal(reply),
      reads: createSharedReads(),
    });
    const completed = reading?.receipt.state === 'completed' ? reading.receipt : undefined;
    return { waitSecs, completed };
  } finally {
    leave();
  }
}

/** The seconds of `Prefer: wait=N`, at most {@link maxWaitSecs}; 0 where there are none. A preference that is malformed is none. */
function preferredWaitSecs(header: string | readonly string[] | undefined): number {
  const preferences = [header ?? []].flat().join(',').split(',');
  const named = preferences.map(
    (preference) => /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/i.exec(preference)?.[1],
  );
  const [first = '0'] = named.filter((secs) => secs !== undefined);
  return Math.min(Number(first), maxWaitSecs);
}
