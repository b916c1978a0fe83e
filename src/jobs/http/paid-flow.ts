import type { IncomingMessage } from 'node:http';
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RouteGenericInterface,
} from 'fastify';
import type { Config } from '../../base/config/config.ts';
import { type InFlight, limitInFlight } from '../../base/http/in-flight.ts';
import type { RequestBodies } from '../../base/http/request-bodies.ts';
import { createRequestField } from '../../base/http/request-field.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import type { Caip2 } from '../../base/values/primitives.ts';
import { refusalOf, sendError, sendRefusal } from '../../ledger/http/errors.ts';
import { createWaitLimit } from '../../ledger/http/wait-limit.ts';
import { offerReceiptKey, receiptEntry } from '../../payments/rules/offer-receipt.ts';
import { encodeHeader } from '../../payments/rules/x402.ts';
import { v1NameOf } from '../../payments/rules/x402-v1.ts';
import type { JobAnswer, PaymentRequired, Refused } from '../use-cases/answer.ts';
import type { JobsContext } from '../use-cases/context.ts';
import {
  type JobHead,
  type OpenedRequest,
  openRequest,
  type RouteOfRequest,
} from '../use-cases/job-request.ts';
import { isAnsweredFirst } from '../use-cases/routes/route-request.ts';
import { payForJob, refuseByHead, refuseUnreadBody } from '../use-cases/pay-job.ts';
import { sendPaymentRequired } from './payment-required.ts';
import { sendPassedOn } from './route-answer.ts';
import type { Replayed } from './schemas/job.ts';

export type AcceptedAnswer = Extract<JobAnswer, { kind: 'accepted' }>;

/** A request whose head was taken. One configuration for the whole request, even if another is loaded meanwhile. */
export interface Opened {
  readonly context: JobsContext;
  readonly request: OpenedRequest;
}

type RequestOf<T extends RouteGenericInterface> = FastifyRequest<T>;

/** What differs between the paths that are paid for. */
export interface PaidPath<R extends FastifyRequest> {
  headOf(request: R): JobHead;
  /** Refuses what no payment could change; undefined for any other request. */
  refuse?(opened: Opened, request: R, reply: FastifyReply): FastifyReply | undefined;
  /** Answers once the payment is settled. */
  accept(opened: Opened, request: R, reply: FastifyReply, answer: AcceptedAnswer): Promise<unknown>;
  /** Who gets an answer while it comes, before its payment is settled. */
  passOn?(opened: Opened, request: R, reply: FastifyReply): Passing;
  /** The payment is settled, but its request was refused before, because the ledger could not be reached. */
  abandon?(opened: Opened, answer: AcceptedAnswer): Promise<unknown>;
}

/** A client that may get its answer before the flow has ended. */
export interface Passing {
  readonly begin: NonNullable<RouteOfRequest['passOn']>;
  readonly hasBegun: () => boolean;
}

/** The flow of paid requests in one part of an app. */
export type PaidFlow = ReturnType<typeof openPaidFlow>;

const ledgerUnavailable: Refused = { kind: 'refused', code: 'ledger_unavailable' };

/** Memory per byte of a job's body: its pieces and the whole, or the whole and what is parsed from it for its check. */
const workFactor = 2;

const openedField = createRequestField<Opened>('openedJob');

/**
 * Prepares an app for paid requests. Bodies are taken as bytes, of any content type. What the headers alone refuse is answered before the
 * body is read.
 */
export function openPaidFlow(app: FastifyInstance, current: () => JobsContext, bodies: RequestBodies) {
  const { lane, log, config } = current();
  const waitLimit = createWaitLimit({ lane, log, refused: ledgerUnavailable });
  app.addHook('onClose', async () => waitLimit.end());
  // first of all: neither a peer nor the ledger is asked
  app.addHook('onRequest', (request, reply, done) => {
    if (lane.state.halt) sendRefusal(request, reply, 'ledger_inconsistent');
    else done();
  });
  const inFlight = takeBytes(app, config.limits, bodies, workFactor);
  openedField.addTo(app);

  const open = (request: FastifyRequest, head: JobHead): Opened => {
    const context = current();
    const both = { context, request: openRequest(context, head) };
    openedField.set(request, both);
    return both;
  };
  const answerFlow = async <R extends FastifyRequest>(
    path: PaidPath<R>,
    request: R,
    reply: FastifyReply,
    flow: Promise<JobAnswer>,
    hasBegun = () => false,
  ) => {
    inFlight.keep(request, flow);
    const opened = openedOf(request);
    const answer = await waitLimit.within(flow);
    if (answer === ledgerUnavailable)
      void flow.then((late) => late.kind === 'accepted' && path.abandon?.(opened, late)).catch(() => {});
    if (hasBegun()) return reply;
    if (answer.kind !== 'accepted') return sendAnswer(opened.context, request, reply, answer);
    return path.accept(opened, request, reply, answer);
  };
  /** Handles what reading the body throws: a body over the limit is refused like any other request. */
  const refuseUnread = async <R extends FastifyRequest>(
    path: PaidPath<R>,
    error: FastifyError,
    request: R,
    reply: FastifyReply,
  ): Promise<void> => {
    if (refusalOf(error) !== 'body_too_large') return void sendError(error, request, reply);
    try {
      const { context, request: head } = openedOf(request);
      await answerFlow(path, request, reply, refuseUnreadBody(context, head));
    } catch (fault) {
      sendError(fault instanceof Error ? fault : new Error(String(fault)), request, reply);
    }
  };
  return {
    open,
    openedOf,
    /** Paid and on record: while it waits for its result it takes neither memory nor a place of other requests. */
    release(request: FastifyRequest) {
      request.body = undefined;
      inFlight.release(request);
    },
    /** The handlers of a path that is paid for. */
    handlers<T extends RouteGenericInterface>(path: PaidPath<RequestOf<T>>) {
      return {
        errorHandler: (error: FastifyError, request: RequestOf<T>, reply: FastifyReply): void =>
          void refuseUnread(path, error, request, reply),
        onRequest(request: RequestOf<T>, reply: FastifyReply, done: () => void) {
          const opened = open(request, path.headOf(request));
          if (path.refuse?.(opened, request, reply)) return;
          // a payment may be known already, and is then answered from its own state, which takes the body
          const isDecoded = opened.request.sent.kind === 'decoded';
          const refused = isDecoded ? undefined : refuseByHead(opened.context, opened.request);
          if (refused) return answerFlow(path, request, reply, refused);
          done();
        },
        handler(request: RequestOf<T>, reply: FastifyReply) {
          const opened = openedOf(request);
          const { context, request: head } = opened;
          const passing = path.passOn?.(opened, request, reply);
          const route = head.route && { ...head.route, passOn: passing?.begin };
          const flow = payForJob(context, { ...head, route }, bodyOf(request));
          return answerFlow(path, request, reply, flow, passing?.hasBegun);
        },
      };
    },
  };
}

/**
 * Takes the bodies of an app as bytes, of any content type, and limits the requests that have one in memory.
 * @param factor memory per byte of a body, while its request is worked on
 */
export function takeBytes(
  app: FastifyInstance,
  { maxInFlightRequests }: Pick<Config['limits'], 'maxInFlightRequests'>,
  bodies: RequestBodies,
  factor: number,
): InFlight {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage) =>
    bodies.read(request, payload, { maxBytes: request.routeOptions.bodyLimit, workFactor: factor }),
  );
  return limitInFlight(
    app,
    maxInFlightRequests,
    (request, reply) => sendRefusal(request, reply, 'overloaded', { reason: 'max_in_flight_requests' }),
    bodies.release,
  );
}

function openedOf(request: FastifyRequest): Opened {
  const opened = openedField.of(request);
  if (!opened) throw new Error('a job request was not opened');
  return opened;
}

/** The offer of a route names the path that was asked for, and how it is charged. */
function onItsPath(
  { settings }: JobsContext,
  request: FastifyRequest,
  answer: PaymentRequired,
): PaymentRequired {
  const { request: opened } = openedOf(request);
  if (!opened.route) return answer;
  const [asked = ''] = request.url.split('?', 1);
  const url = `${settings.routes?.publicUrl}${asked}`;
  return { ...answer, quote: { ...answer.quote, url, isAnsweredFirst: isAnsweredFirst(opened) } };
}

export function bodyOf({ body }: FastifyRequest): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

/** A repeated header arrives joined by commas, which no valid value contains. */
export function callerHeadersOf(headers: FastifyRequest['headers']): JobHead['callerHeaders'] {
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
export function paymentOf(headers: FastifyRequest['headers']): JobHead['payment'] {
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
    case 'passed_on':
      noteFacts(request, { quote_digest: answer.digest });
      return sendPassedOn(reply, answer.answer);
    case 'payment_required':
      return sendPaymentRequired(context, request, reply, onItsPath(context, request, answer));
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

export function receiptUrl(context: JobsContext, digest: string): string {
  return `${context.publicUrl()}/x402/receipts/${digest}`;
}

/** The header that tells the client of its settlement, in the version of its payment. */
export function paymentResponse({
  payment: { transaction, payer, network, amount },
  x402Version,
  signedReceipt,
}: AcceptedAnswer): [name: string, value: string] {
  const isV1 = x402Version === 1;
  const named = (isV1 && v1NameOf(network as Caip2)) || network;
  const extensions = signedReceipt && { extensions: { [offerReceiptKey]: receiptEntry(signedReceipt) } };
  const moved = isV1 ? {} : { amount };
  const value = encodeHeader({ success: true, transaction, network: named, payer, ...moved, ...extensions });
  return [isV1 ? 'x-payment-response' : 'payment-response', value];
}
