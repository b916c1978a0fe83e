import { clientOf } from '../values/client-address.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createRequestField } from './request-field.ts';
import { addressOf } from './request-values.ts';

/** Requests that count against the limit. */
export interface InFlight {
  /** The request counts until this promise settles, also where its client has disconnected. */
  keep(request: FastifyRequest, flow: Promise<unknown>): void;
  /** The request does not count any more: its work has ended, though its answer waits for something. */
  release(request: FastifyRequest): void;
}

/** The place of one request. */
interface Place {
  readonly client: string;
  /** Its body has been read, or its client has left. */
  hasArrived: boolean;
  isFree: boolean;
  flow: Promise<unknown> | undefined;
}

const placeField = createRequestField<Place>('inFlight');

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
  let countedRequests = 0;
  const arriving = new Map<string, number>();
  const maxShare = Math.max(leastShare, Math.floor(maxRequests / 4));
  placeField.addTo(app);

  const endArrival = (place: Place): void => {
    if (place.hasArrived) return;
    place.hasArrived = true;
    const left = (arriving.get(place.client) ?? 1) - 1;
    if (left > 0) arriving.set(place.client, left);
    else arriving.delete(place.client);
  };
  const free = (request: FastifyRequest, place: Place): void => {
    if (place.isFree) return;
    place.isFree = true;
    countedRequests--;
    onFree(request);
  };
  app.addHook('onRequest', (request, reply, done) => {
    const client = clientOf(addressOf(request));
    const ofClient = arriving.get(client) ?? 0;
    if (countedRequests >= maxRequests || ofClient >= maxShare) return void refuse(request, reply);
    countedRequests++;
    arriving.set(client, ofClient + 1);
    const place: Place = { client, hasArrived: false, isFree: false, flow: undefined };
    placeField.set(request, place);
    reply.raw.once('close', () => {
      endArrival(place);
      if (place.flow)
        place.flow.then(
          () => free(request, place),
          () => free(request, place),
        );
      else free(request, place);
    });
    done();
  });
  // the body has been read
  app.addHook('preHandler', (request, _reply, done) => {
    const place = placeField.of(request);
    if (place) endArrival(place);
    done();
  });
  return {
    keep(request, flow) {
      const place = placeField.of(request);
      if (place) place.flow = flow;
    },
    release(request) {
      const place = placeField.of(request);
      if (place) free(request, place);
    },
  };
}
