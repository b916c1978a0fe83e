import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** Requests that count against the limit. */
export interface InFlight {
  /** The request counts until this promise settles, also where its client has disconnected. */
  keep(request: FastifyRequest, flow: Promise<unknown>): void;
}

/**
 * Limits concurrent requests, because their bodies are in memory. Requests whose clients have disconnected count until their
 * work ends. A request beyond the limit is refused before its body is read.
 * @param onFree called when a request no longer counts
 */
export function limitInFlight(
  app: FastifyInstance,
  maxRequests: number,
  refuse: (request: FastifyRequest, reply: FastifyReply) => FastifyReply,
  onFree: (request: FastifyRequest) => void = () => {},
): InFlight {
  const flowOf = new WeakMap<FastifyRequest, Promise<unknown>>();
  let countedRequests = 0;
  const release = async (request: FastifyRequest): Promise<void> => {
    await flowOf.get(request)?.catch(() => {});
    countedRequests--;
    onFree(request);
  };
  app.addHook('onRequest', async (request, reply) => {
    if (countedRequests >= maxRequests) return refuse(request, reply);
    countedRequests++;
    reply.raw.once('close', () => void release(request));
  });
  return { keep: (request, flow) => void flowOf.set(request, flow) };
}
