import type { FastifyInstance, FastifyRequest } from 'fastify';

/** What the one line of a request says beside method, path and status: ids only. */
export interface RequestFacts {
  readonly quote_digest?: string;
  readonly call_id?: number;
  readonly chat_id?: string;
  readonly code?: string;
  /** Instead of the request's own, where that holds a secret. */
  readonly path?: string;
}

const facts = new WeakMap<FastifyRequest, RequestFacts>();

/** Adds to the line that will be logged for this request. */
export function noteFacts(request: FastifyRequest, more: RequestFacts): void {
  facts.set(request, { ...facts.get(request), ...more });
}

/** One line a request, when it was answered. Headers and bodies never enter it: they hold signatures and tokens. */
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
