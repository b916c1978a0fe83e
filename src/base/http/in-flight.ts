import { clientOf } from '../values/client-address.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createPlaces } from '../runtime/places.ts';
import { createRequestField } from './request-field.ts';
import { addressOf } from './request-values.ts';

/** Requests that count against the limit. */
export interface InFlight {
  /** The request counts until this promise settles, also if its client has disconnected. */
  keep(request: FastifyRequest, flow: Promise<unknown>): void;
  /** The request does not count any more: its work has ended, though its answer waits for something. */
  release(request: FastifyRequest): void;
}

/** The place of one request. */
interface Place {
  /** Its body has been read, or its client has left. */
  readonly endArrival: () => void;
  readonly leave: () => void;
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
  const [counted, arriving] = [createPlaces(), createPlaces()];
  const maxShare = Math.max(leastShare, Math.floor(maxRequests / 4));
  placeField.addTo(app);

  const free = (request: FastifyRequest, place: Place): void => {
    if (place.isFree) return;
    place.isFree = true;
    place.leave();
    onFree(request);
  };
  app.addHook('onRequest', (request, reply, done) => {
    const leave = counted.take([['all', maxRequests]]);
    const endArrival = leave && arriving.take([[clientOf(addressOf(request)), maxShare]]);
    if (!endArrival) {
      leave?.();
      return void refuse(request, reply);
    }
    const place: Place = { endArrival, leave, isFree: false, flow: undefined };
    placeField.set(request, place);
    reply.raw.once('close', () => {
      endArrival();
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
    placeField.of(request)?.endArrival();
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
