import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { openAiError } from '../../base/errors/openai-error.ts';
import type { AdmittedChat } from '../use-cases/admission.ts';
import {
  type ChatAnswer,
  type Refused,
  refuse,
  type LimitLeft,
  type LimitState,
} from '../use-cases/answer.ts';
import { countRefusal } from '../use-cases/count-refusal.ts';
import { requestChat } from '../use-cases/complete-chat.ts';
import type { ChatContext } from '../use-cases/context.ts';
import { callerOf } from './credentials.ts';
import { eventStream } from '../../base/http/event-stream.ts';
import { limitInFlight } from '../../base/http/in-flight.ts';
import { type Completions, ledgerUnavailable } from './make-completion.ts';
import { sendOpenAiError } from '../../ledger/http/openai-errors.ts';
import { RefusedRequestError, type RequestBodies } from '../../base/http/request-bodies.ts';
import { noteFacts } from '../../base/http/request-log.ts';

/** Memory per byte of a body while it is processed: its bytes, text, values, and text and bytes again; text has two bytes a character. */
const workFactor = 8;
/** Memory per byte of a body after the upstream was called: its bytes, and the sample that estimates its tokens. */
const sentFactor = 2;
const keepAliveMs = 15_000;
/** How long an unread rest of an answer is kept after the upstream is done. */
const unreadMs = 60_000;
const halted = { retryAfterSecs: 60 };

/** The x402 offer for a request without an account: the value of `PAYMENT-REQUIRED`; undefined if there is none. */
export type OfferCompletion = (request: FastifyRequest, body: Buffer) => Promise<string | undefined>;

/** POST /v1/chat/completions. */
export function completionRoutes(
  current: () => ChatContext,
  bodies: RequestBodies,
  completions: Completions,
  cutShort: AbortSignal,
  offer?: OfferCompletion,
) {
  const chargeClient = async (request: FastifyRequest, reply: FastifyReply) => {
    const retryAfterSecs = completions.charge(request);
    if (retryAfterSecs > 0)
      return sendOpenAiError(request, reply, openAiError('rate_limit_exceeded'), { retryAfterSecs });
  };
  return async (app: FastifyInstance): Promise<void> => {
    const { lane, config } = current();
    app.addHook('onClose', async () => completions.end());
    app.addHook('onRequest', (request, reply, done) => {
      if (lane.state.halt) sendOpenAiError(request, reply, openAiError('ledger_inconsistent'), halted);
      else done();
    });
    const inFlight = limitInFlight(
      app,
      config.limits.maxInFlightRequests,
      (request, reply) => sendOpenAiError(request, reply, openAiError('overloaded'), { retryAfterSecs: 1 }),
      bodies.release,
    );
    app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage) =>
      bodies
        .read(request, payload, { maxBytes: current().settings.maxBodyBytes, workFactor })
        // refused by the handler, which knows whose limits count it
        .catch((error: unknown) => {
          if (error instanceof RefusedRequestError && error.code === 'body_too_large') return error;
          throw error;
        }),
    );

    app.post('/chat/completions', { onRequest: chargeClient }, async (request, reply) => {
      const context = current();
      const bodyBytes = Buffer.isBuffer(request.body) ? request.body.length : 0;
      const admission = admit(context, request, offer);
      const onClose = (listener: () => void): void => void reply.raw.once('close', listener);
      const made = completions.make({ context, request, bodyBytes, admission, onClose });
      inFlight.keep(request, made.flow);
      const answer = await made.answer;
      // the answer has begun, so the request's memory can be freed
      if (answer !== ledgerUnavailable) bodies.shrink(request, bodyBytes * sentFactor);
      return sendAnswer(context, request, reply, answer, cutShort);
    });
  };
}

async function admit(
  context: ChatContext,
  request: FastifyRequest,
  offer: OfferCompletion | undefined,
): Promise<AdmittedChat | Refused> {
  const caller = await callerOf(context, request);
  if (caller.kind === 'refused') return caller;
  const { body } = request;
  const fault = bodyFault(request);
  if (fault) return countRefusal(context, caller, refuse(openAiError(fault)));
  // frees the body while the answer is being written
  request.body = undefined;
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  const result = await requestChat(context, caller, bytes);
  const isUnpaid = result.kind === 'refused' && result.error.status === 402 && caller.kind === 'anonymous';
  const offered = isUnpaid ? await offer?.(request, bytes) : undefined;
  return isUnpaid && offered !== undefined ? { ...result, offer: offered } : result;
}

function bodyFault({
  body,
  headers,
}: FastifyRequest): 'body_too_large' | 'unsupported_media_type' | undefined {
  if (body instanceof RefusedRequestError) return 'body_too_large';
  return isPlainJson(headers) ? undefined : 'unsupported_media_type';
}

async function sendAnswer(
  context: ChatContext,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: ChatAnswer,
  cutShort: AbortSignal,
): Promise<FastifyReply> {
  if (answer.limit) reply.headers(limitHeaders(answer.limit, Date.now() + context.lane.state.clockOffsetMs));
  if (answer.kind === 'refused') return sendOpenAiError(request, reply, answer.error, answer);
  noteFacts(request, { chat_id: answer.chatId });
  reply.headers({ 'x-request-id': answer.chatId, 'cache-control': 'no-store' });
  if (answer.kind === 'whole') return reply.type('application/json').send(answer.body);
  const body = await eventStream(answer.chunks, { keepAliveMs, isCutShort: () => cutShort.aborted });
  void context.running.add(once(body, 'close'));
  void endUnread(body, answer.ended);
  // asks proxies not to buffer the stream
  return reply.headers({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }).send(body);
}

/** Closes the connection of a client that does not read the rest of its answer in time. */
async function endUnread(body: Readable, ended: Promise<void>): Promise<void> {
  await ended;
  const timer = setTimeout(() => body.destroy(new Error('the client does not read')), unreadMs);
  body.once('close', () => clearTimeout(timer));
}

/** Whether the headers declare uncompressed JSON, with or without a charset. */
function isPlainJson(headers: {
  readonly 'content-type'?: string | undefined;
  readonly 'content-encoding'?: string | undefined;
}): boolean {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  return /^application\/json\s*(?:;|$)/i.test(type) && encoding.toLowerCase() === 'identity';
}

const minuteSecs = 60;
const daySecs = 86_400;

/**
 * What is left of a caller's limits, in two forms: `X-RateLimit-*`, for the limit that binds, and the IETF draft's headers, with
 * the minute and the day each by itself.
 * @param nowMs by the database's clock
 */
function limitHeaders({ minute, day }: LimitState, nowMs: number): Readonly<Record<string, string>> {
  const windows: [string, number, LimitLeft][] = [['minute', minuteSecs, minute]];
  if (day) windows.push(['day', daySecs, day]);
  const bound = day && day.remaining <= minute.remaining ? day : minute;
  return {
    'x-ratelimit-limit': String(bound.limit),
    'x-ratelimit-remaining': String(bound.remaining),
    'x-ratelimit-reset': String(Math.floor(nowMs / 1_000) + bound.resetSecs),
    'ratelimit-policy': windows.map(([name, secs, { limit }]) => `"${name}";q=${limit};w=${secs}`).join(', '),
    ratelimit: windows
      .map(([name, , { remaining, resetSecs }]) => `"${name}";r=${remaining};t=${resetSecs}`)
      .join(', '),
  };
}
