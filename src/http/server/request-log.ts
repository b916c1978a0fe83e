import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { addressOf } from './request-values.ts';

/** Fields of a request's log line beside method, path and status: ids only. */
export interface RequestFacts {
  readonly quote_digest?: string;
  readonly call_id?: number;
  readonly chat_id?: string;
  readonly code?: string;
  /** Replaces the request's path, where that holds a secret. */
  readonly path?: string;
}

const facts = new WeakMap<FastifyRequest, RequestFacts>();

/** Adds fields to the log line of this request. */
export function noteFacts(request: FastifyRequest, more: RequestFacts): void {
  facts.set(request, { ...facts.get(request), ...more });
}

/**
 * Logs one line per request. Headers and bodies are never logged: they hold signatures and tokens. A client that left before it
 * had its answer is no error; such a line has no status.
 */
export function logRequests(app: FastifyInstance): void {
  const logged = new WeakSet<FastifyRequest>();
  const logOnce = (request: FastifyRequest, reply: FastifyReply): void => {
    if (logged.has(request)) return;
    logged.add(request);
    const { writableFinished: isAnswered } = reply.raw;
    request.log.info(
      {
        method: request.method,
        path: request.url.split('?', 1)[0]?.slice(0, 200),
        ...(isAnswered ? { status: reply.statusCode } : { client_left: true }),
        ms: Math.round(reply.elapsedTime * 10) / 10,
        client: addressOf(request).slice(0, 64),
        ...facts.get(request),
      },
      'request',
    );
  };
  app.addHook('onRequest', async (request, reply) => {
    reply.raw.once('close', () => logOnce(request, reply));
  });
  // also for a request that is refused before its hooks
  app.addHook('onResponse', async (request, reply) => logOnce(request, reply));
}
