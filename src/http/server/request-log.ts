import type { FastifyInstance, FastifyRequest } from 'fastify';

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

/** Logs one line per answered request. Headers and bodies are never logged: they hold signatures and tokens. */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', async (request, reply) => {
    request.log.info(
      {
        method: request.method,
        path: request.url.split('?', 1)[0]?.slice(0, 200),
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        client: request.ip,
        ...facts.get(request),
      },
      'request',
    );
  });
}
