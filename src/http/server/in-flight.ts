import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** The places that requests take. */
export interface InFlight {
  /** The work of a request goes on until this ends, also where its client has gone. */
  keep(request: FastifyRequest, flow: Promise<unknown>): void;
}

/**
 * Bodies are held in memory: so many requests at a time, those included whose clients have gone while they are finished. One
 * that finds no place is refused before anything of it is read.
 * @param onFree the place of a request is free again
 */
export function limitInFlight(
  app: FastifyInstance,
  maxRequests: number,
  refuse: (request: FastifyRequest, reply: FastifyReply) => FastifyReply,
  onFree: (request: FastifyRequest) => void = () => {},
): InFlight {
  const flowOf = new WeakMap<FastifyRequest, Promise<unknown>>();
  let heldRequests = 0;
  const release = async (request: FastifyRequest): Promise<void> => {
    await flowOf.get(request)?.catch(() => {});
    heldRequests--;
    onFree(request);
  };
  app.addHook('onRequest', async (request, reply) => {
    if (heldRequests >= maxRequests) return refuse(request, reply);
    heldRequests++;
    reply.raw.once('close', () => void release(request));
  });
  return { keep: (request, flow) => void flowOf.set(request, flow) };
}
