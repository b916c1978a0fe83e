import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { openAiError } from '../../domain/errors/openai-error.ts';
import type { AdmittedChat } from '../../chat/admission.ts';
import { type ChatAnswer, type Refused, refuse } from '../../chat/answer.ts';
import { requestChat, clientLeft, dropChat, completeChat } from '../../chat/complete-chat.ts';
import type { ChatContext } from '../../chat/context.ts';
import { isPlainJson } from './completion-body.ts';
import { callerOf } from './credentials.ts';
import { eventStream } from './event-stream.ts';
import { limitInFlight } from '../server/in-flight.ts';
import { limitHeaders } from './limit-headers.ts';
import { sendOpenAiError } from './openai-errors.ts';
import type { RequestBodies } from '../server/request-bodies.ts';
import { createWaitLimit } from '../server/wait-limit.ts';
import { noteFacts } from '../server/request-log.ts';
import { addressOf } from '../server/request-values.ts';
import { addressBudgetKey, type Charge } from '../../runtime/budget.ts';

/** Memory per byte of a body while it is processed: its bytes, text, values, and text and bytes again; text has two bytes a character. */
const workFactor = 8;
/** Memory per byte of a body after the upstream was called: its bytes, and the sample that estimates its tokens. */
const sentFactor = 2;
/** A refused body costs its client address one request more for each of these: reading it and counting its tokens take time. */
const bytesPerCharge = 16 * 1_024;
const keepAliveMs = 15_000;
/** How long an unread rest of an answer is kept after the upstream is done. */
const unreadMs = 60_000;
const halted = { retryAfterSecs: 60 };
const ledgerUnavailable = refuse(openAiError('ledger_unavailable'), { retryAfterSecs: 2 });

/**
 * POST /v1/chat/completions. A client that leaves aborts its completion at once; `cutShort` aborts all of them.
 */
export function completionRoutes(current: () => ChatContext, bodies: RequestBodies, cutShort: AbortSignal) {
  return async (app: FastifyInstance): Promise<void> => {
    const { lane, log, config } = current();
    const waitLimit = createWaitLimit({ lane, log, refused: ledgerUnavailable });
    app.addHook('onClose', async () => waitLimit.end());
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
      bodies.read(request, payload, { maxBytes: current().settings.maxBodyBytes, workFactor }),
    );
    const open = new Set<AbortController>();
    cutShort.addEventListener('abort', () => {
      for (const client of open) client.abort();
    });

    const charges = new WeakMap<FastifyRequest, Charge>();
    // before the body is read: a client whose requests are refused all the time costs no more than their headers
    const chargeClient = async (request: FastifyRequest, reply: FastifyReply) => {
      const charge = current().budget.open();
      charge.take(addressBudgetKey(addressOf(request)));
      charges.set(request, charge);
      const retryAfterSecs = charge.waitSecs();
      if (retryAfterSecs > 0)
        return sendOpenAiError(request, reply, openAiError('rate_limit_exceeded'), { retryAfterSecs });
    };

    app.post('/chat/completions', { onRequest: chargeClient }, async (request, reply) => {
      if (!isPlainJson(request.headers))
        return sendOpenAiError(request, reply, openAiError('unsupported_media_type'));
      // a reload does not change the configuration of a running request
      const context = current();
      const client = new AbortController();
      open.add(client);
      reply.raw.once('close', () => {
        open.delete(client);
        // an abort without a reason would create an exception with a stack trace for every answer
        client.abort(clientLeft);
      });
      const bodyBytes = Buffer.isBuffer(request.body) ? request.body.length : 0;
      const admission = admit(context, request);
      const flow = makeAdmitted(context, admission, client.signal, cutShort);
      inFlight.keep(request, flow);
      void context.running.add(flow);
      const admitted = await waitLimit.within(admission);
      if (admitted === ledgerUnavailable) client.abort(gaveUp);
      // the gateway's own faults cost no budget
      if (admitted.kind !== 'refused' || admitted.error.status >= 500) charges.get(request)?.refund();
      else charges.get(request)?.chargeMore(Math.floor(bodyBytes / bytesPerCharge));
      const answer = admitted === ledgerUnavailable ? ledgerUnavailable : await flow;
      // the answer has begun, so the request's memory can be freed
      if (answer !== ledgerUnavailable) bodies.shrink(request, bodyBytes * sentFactor);
      return sendAnswer(context, request, reply, answer, cutShort);
    });
  };
}

/** The client was refused already, because the ledger could not be reached in time. */
const gaveUp = 'the ledger cannot be reached';

async function makeAdmitted(
  context: ChatContext,
  admission: Promise<AdmittedChat | Refused>,
  signal: AbortSignal,
  cutShort: AbortSignal,
): Promise<ChatAnswer> {
  const chat = await admission;
  if (chat.kind === 'refused') return chat;
  if (!signal.aborted) return completeChat(context, chat, signal, cutShort);
  dropChat(context, chat);
  return ledgerUnavailable;
}

async function admit(context: ChatContext, request: FastifyRequest): Promise<AdmittedChat | Refused> {
  const caller = await callerOf(context, request);
  if (caller.kind === 'refused') return caller;
  const { body } = request;
  // frees the body while the answer is being written
  request.body = undefined;
  return requestChat(context, caller, Buffer.isBuffer(body) ? body : Buffer.alloc(0));
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
