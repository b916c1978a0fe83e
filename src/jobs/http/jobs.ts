import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parseJobId } from '../../base/values/job.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { quoteTokenParameter } from '../../payments/rules/quote-token.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { callbackSecretText } from '../../calls/use-cases/read-callback.ts';
import { dryRun, refuseDryRunByHead, type DryRun } from '../use-cases/dry-run.ts';
import type { JobHead } from '../use-cases/job-request.ts';
import { addressOf, declaredBytesOf } from '../../base/http/request-values.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import type { RequestBodies } from '../../base/http/request-bodies.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import type { WaitPlaces } from '../../base/http/wait-places.ts';
import type { Accepted, Completed } from './schemas/job.ts';
import { awaitReceipt, maxWaitSecs } from '../use-cases/follow-receipt.ts';
import type { ReceiptReading } from '../use-cases/receipt.ts';
import { createSharedReads } from '../../base/runtime/shared-reads.ts';
import { leftSignal } from '../../base/http/left-signal.ts';
import {
  type AcceptedAnswer,
  bodyOf,
  callerHeadersOf,
  openPaidFlow,
  paymentOf,
  paymentResponse,
  receiptUrl,
} from './paid-flow.ts';

interface JobParams {
  readonly service_id: string;
  readonly job_index: string;
}

/** POST /x402/jobs/{service_id}/{job_index}: the paid flow, and its dry run. */
export function paidJobRoutes(current: () => JobsContext, bodies: RequestBodies, places: WaitPlaces) {
  return async (app: FastifyInstance): Promise<void> => {
    const flow = openPaidFlow(app, current, bodies);
    app.post<JobRoute>(
      '/x402/jobs/:service_id/:job_index',
      flow.handlers<JobRoute>({
        headOf: jobHead,
        async accept({ context }, request, reply, answer) {
          flow.release(request);
          const wait =
            request.headers['prefer'] === undefined
              ? undefined
              : await waitAsPreferred(context, request, reply, answer.digest, places);
          return sendAccepted(context, request, reply, answer, wait);
        },
      }),
    );
    app.post<JobRoute>(
      '/x402/jobs/:service_id/:job_index/auth-dry-run',
      {
        onRequest: async (request, reply) => {
          const { context, request: head } = flow.open(request, jobHead(request));
          const refused = refuseDryRunByHead(context, head);
          if (refused) return sendDryRun(request, reply, refused);
        },
      },
      async (request, reply) => {
        const { context, request: head } = flow.openedOf(request);
        return sendDryRun(request, reply, await dryRun(context, head, bodyOf(request)));
      },
    );
  };
}

/** A repeated parameter is a list. */
type JobQuery = Readonly<Record<string, string | readonly string[] | undefined>>;

interface JobRoute {
  readonly Params: JobParams;
  readonly Querystring: JobQuery;
}

type PaidRequest = FastifyRequest<JobRoute>;

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

/** 202; or 200 with the result, where the call was completed while the client preferred to wait. */
function sendAccepted(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: AcceptedAnswer,
  wait: PreferredWait | undefined,
) {
  const { digest, callId, job, payment, receiptToken } = answer;
  noteFacts(request, { quote_digest: digest, call_id: callId });
  if (answer.replayed) reply.header('idempotent-replayed', 'true');
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
  if (wait) reply.header('preference-applied', `wait=${wait.waitSecs}`);
  return reply
    .code(completed ? 200 : 202)
    .header('location', `/x402/receipts/${digest}`)
    .header('cache-control', 'no-store')
    .header(...paymentResponse(answer))
    .send(completed ?? body);
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
  /** The receipt with the result; undefined if the call was not completed in time. */
  readonly completed: ReceiptReading['receipt'] | undefined;
}

/**
 * Waits for the result of a paid call as long as its client prefers (RFC 7240), which the client must have shown to be its own.
 * Undefined if it prefers nothing, or if no place to wait is free: a paid request is never refused for that.
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

/** The seconds of `Prefer: wait=N`, at most {@link maxWaitSecs}; 0 if there are none. A preference that is malformed is none. */
function preferredWaitSecs(header: string | readonly string[] | undefined): number {
  const preferences = [header ?? []].flat().join(',').split(',');
  const named = preferences.map(
    (preference) => /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/i.exec(preference)?.[1],
  );
  const [first = '0'] = named.filter((secs) => secs !== undefined);
  return Math.min(Number(first), maxWaitSecs);
}
