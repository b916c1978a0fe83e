import { clientOf } from '../../domain/values/client-address.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { addressOf } from './request-values.ts';

/** Requests that count against the limit. */
export interface InFlight {
  /** The request counts until this promise settles, also where its client has disconnected. */
  keep(request: FastifyRequest, flow: Promise<unknown>): void;
}

/** The least that any client may send at the same time. */
const leastShare = 16;

/**
 * Limits concurrent requests, because their bodies are in memory. Requests whose clients have disconnected count until their
 * work ends. A request beyond the limit is refused before its body is read. Of the requests whose bodies are still arriving, one
 * client address may have a quarter of the limit: a slow sender must not keep out the others.
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
  const arriving = new Map<string, number>();
  const maxShare = Math.max(leastShare, Math.floor(maxRequests / 4));
  /** Ends the arrival of a request, once. */
  const arrivals = new WeakMap<FastifyRequest, () => void>();
  const beginArrival = (client: string): (() => void) => {
    arriving.set(client, (arriving.get(client) ?? 0) + 1);
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      const left = (arriving.get(client) ?? 1) - 1;
      if (left > 0) arriving.set(client, left);
      else arriving.delete(client);
    };
  };
  const release = async (request: FastifyRequest): Promise<void> => {
    await flowOf.get(request)?.catch(() => {});
    countedRequests--;
    onFree(request);
  };
  app.addHook('onRequest', async (request, reply) => {
    const client = clientOf(addressOf(request));
    if (countedRequests >= maxRequests || (arriving.get(client) ?? 0) >= maxShare)
      return refuse(request, reply);
    countedRequests++;
    const endArrival = beginArrival(client);
    arrivals.set(request, endArrival);
    reply.raw.once('close', () => {
      endArrival();
      void release(request);
    });
  });
  // the body has been read
  app.addHook('preHandler', async (request) => arrivals.get(request)?.());
  return { keep: (request, flow) => void flowOf.set(request, flow) };
}
