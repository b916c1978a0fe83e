import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { jsonProblem } from '../values/bounded-json.ts';
import { clientOf } from '../values/client-address.ts';
import { createRequestField } from './request-field.ts';
import { addressOf, declaredBytesOf } from './request-values.ts';
import { type BodyReservation, createBodyMemory } from './body-memory.ts';

/** Memory per chunk in addition to its bytes: a body may arrive byte by byte. */
const pieceBytes = 512;
/** Memory per byte of JSON while it is processed: bytes, text of two bytes a character, and values. */
const jsonFactor = 4;

/** A request that is refused if the route's error handler has to answer: by a content type parser or a hook. */
export class RefusedRequestError extends Error {
  override readonly name = 'RefusedRequestError';
  readonly code: 'body_too_large' | 'overloaded' | 'invalid_request' | 'too_many_attempts';
  readonly retryAfterSecs: number | undefined;

  constructor(code: RefusedRequestError['code'], retryAfterSecs?: number) {
    super(code);
    this.code = code;
    this.retryAfterSecs = retryAfterSecs;
  }
}

export interface BodyLimits {
  readonly maxBytes: number;
  /** Memory per byte while the body is processed. */
  readonly workFactor: number;
}

const placeField = createRequestField<BodyReservation>('bodyPlace');
/** Its parser keeps no bytes: its memory is free once its answer is made. */
const parsedField = createRequestField<true>('isBodyParsed');

/** The bodies of all requests of this process, within one bound. */
export interface RequestBodies {
  /**
   * Reads a body as bytes. A refused body is still read to its end and discarded: a client that is sending would not see the
   * refusal. The server's request time-out limits that. Its memory counts until {@link release}.
   * @throws RefusedRequestError `invalid_request` when the client stopped in the middle
   */
  read(request: FastifyRequest, payload: Readable, limits: BodyLimits): Promise<Buffer>;
  /** From now on this request's body takes at most this many bytes. */
  shrink(request: FastifyRequest, bytes: number): void;
  /** This request's body takes no memory any more. */
  release(request: FastifyRequest): void;
}

/** @param maxBytes for all bodies together: a quarter of it for bodies that arrive, the rest for those that are processed */
export function createRequestBodies(maxBytes: number): RequestBodies {
  const memory = createBodyMemory({ arrivingBytes: maxBytes / 4, workingBytes: (maxBytes * 3) / 4 });
  return {
    read(request, payload, limits) {
      return readBody(payload, declaredBytesOf(request.headers), limits, (onDrop) => {
        // of a client with an IPv6 address, its /64
        const place = memory.reserve(clientOf(addressOf(request)), onDrop);
        placeField.set(request, place);
        return place;
      });
    },
    shrink: (request, bytes) => placeField.of(request)?.shrink(bytes),
    release: (request) => placeField.of(request)?.release(),
  };
}

/**
 * Parses JSON and text bodies within the bound, up to the limit of their route, until they are answered. JSON of more values or levels than
 * any route takes is refused unparsed.
 */
export function parseWithin(app: FastifyInstance, bodies: RequestBodies): void {
  const parseJson = app.getDefaultJsonParser('error', 'error');
  placeField.addTo(app);
  parsedField.addTo(app);
  const readBytes = (request: FastifyRequest, payload: Readable): Promise<Buffer> => {
    parsedField.set(request, true);
    return bodies.read(request, payload, {
      maxBytes: request.routeOptions.bodyLimit,
      workFactor: jsonFactor,
    });
  };
  const readJsonText = async (request: FastifyRequest, payload: Readable): Promise<string> => {
    const bytes = await readBytes(request, payload);
    if (jsonProblem(bytes) !== undefined) throw new RefusedRequestError('invalid_request');
    return bytes.toString('utf8');
  };
  app.addContentTypeParser('application/json', (request, payload, done) => {
    readJsonText(request, payload).then((text) => void parseJson(request, text, done), done);
  });
  app.addContentTypeParser('text/plain', async (request: FastifyRequest, payload: Readable) =>
    (await readBytes(request, payload)).toString('utf8'),
  );
  // once its handler has answered: an answer that its client did not wait for is never sent
  app.addHook('onSend', (request, _reply, _payload, done) => {
    if (parsedField.of(request)) bodies.release(request);
    done();
  });
}

/** By events: an async iterator makes several promises for a body of a few bytes, which most bodies are. */
function readBody(
  payload: Readable,
  declaredBytes: number,
  { maxBytes, workFactor }: BodyLimits,
  enter: (onDrop: () => void) => BodyReservation,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let sizeBytes = 0;
    let refused: 'body_too_large' | 'overloaded' | undefined;
    const refuse = (why: typeof refused): void => {
      refused = why;
      pieces.length = 0;
      place.release();
    };
    const place = enter(() => refuse('overloaded'));
    let hasEnded = false;
    const onCut = (): void => {
      if (hasEnded) return;
      place.release();
      reject(new RefusedRequestError('invalid_request'));
    };
    // one whose client has left tells nothing any more
    if (payload.destroyed) return onCut();
    if (declaredBytes > maxBytes) refuse('body_too_large');
    payload.on('data', (piece: Buffer) => {
      sizeBytes += piece.length;
      if (sizeBytes > maxBytes) refuse('body_too_large');
      else if (refused === undefined && place.grow(piece.length + pieceBytes)) pieces.push(piece);
    });
    payload.once('end', () => {
      hasEnded = true;
      if (refused === undefined && !place.startWork(sizeBytes * workFactor)) refuse('overloaded');
      if (refused !== undefined) return reject(new RefusedRequestError(refused));
      resolve(pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces, sizeBytes));
    });
    payload.once('error', onCut).once('close', onCut);
  });
}

/** No form of a page has as many. */
const maxFields = 1_000;

/**
 * The fields of a form, or of the query that a page was asked with: each look-up passes over all of them.
 * @throws RefusedRequestError `invalid_request` if there are more than a thousand
 */
export function formFields(text: string): URLSearchParams {
  let fields = 1;
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) fields += 1;
  if (fields > maxFields) throw new RefusedRequestError('invalid_request');
  return new URLSearchParams(text);
}
