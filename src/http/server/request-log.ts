import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { addressOf } from './request-values.ts';

/** Fields of a request's log line beside method, path and status: ids only. */
export interface RequestFacts {
  quote_digest?: string;
  call_id?: number;
  chat_id?: string;
  code?: string;
  /** Replaces the request's path, where that holds a secret. */
  path?: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** For the log line. A field of the request: a WeakMap costs each request more, also in the garbage collector. */
    logFacts: RequestFacts | undefined;
    isLogged: boolean;
  }
}

/** Adds fields to the log line of this request. */
export function noteFacts(request: FastifyRequest, more: Readonly<RequestFacts>): void {
  request.logFacts = request.logFacts ? Object.assign(request.logFacts, more) : { ...more };
}

/**
 * Logs one line per request. Headers and bodies are never logged: they hold signatures and tokens. A client that left before it
 * had its answer is no error; such a line has no status.
 */
export function logRequests(app: FastifyInstance): void {
  app.decorateRequest('logFacts', undefined);
  app.decorateRequest('isLogged', false);
  app.addHook('onRequest', (request, reply, done) => {
    reply.raw.once('close', () => logOnce(request, reply));
    done();
  });
  // also for a request that is refused before its hooks
  app.addHook('onResponse', (request, reply, done) => {
    logOnce(request, reply);
    done();
  });
}

function logOnce(request: FastifyRequest, reply: FastifyReply): void {
  if (request.isLogged) return;
  request.isLogged = true;
  request.log.info(
    {
      reqId: request.id,
      method: request.method,
      path: pathOf(request.url),
      ...(reply.raw.writableFinished ? { status: reply.statusCode } : { client_left: true }),
      ms: Math.round(reply.elapsedTime * 10) / 10,
      client: addressOf(request).slice(0, 64),
      ...request.logFacts,
    },
    'request',
  );
}

function pathOf(url: string): string {
  const end = url.indexOf('?');
  return url.slice(0, Math.min(200, end < 0 ? url.length : end));
}
