import type { Readable } from 'node:stream';
import type { BodyReservation } from '../server/body-memory.ts';
import { ThrownOpenAiError } from './openai-errors.ts';

/** Memory per chunk beside its bytes: a body may arrive byte by byte. */
const pieceBytes = 512;
/** Memory per byte of a body while it is processed: its bytes, text, values, and text and bytes again; text has two bytes a character. */
const workFactor = 8;

/**
 * Reads a body as bytes. A refused body is still read to its end and discarded: a client that is sending would not see the
 * refusal. The server's request time-out limits that.
 * @param enter reserves memory for the body, which is freed when the body is refused
 * @throws ThrownOpenAiError `body_too_large`, `overloaded`; `invalid_request` when the client stopped in the middle
 */
export async function readBody(
  payload: Readable,
  maxBytes: number,
  enter: (onDrop: () => void) => BodyReservation,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let sizeBytes = 0;
  let refused: 'body_too_large' | 'overloaded' | undefined;
  const refuse = (why: typeof refused): void => {
    refused = why;
    pieces.length = 0;
    place.release();
  };
  const place = enter(() => refuse('overloaded'));
  try {
    for await (const piece of payload as AsyncIterable<Buffer>) {
      sizeBytes += piece.length;
      if (sizeBytes > maxBytes) refuse('body_too_large');
      else if (refused === undefined && place.grow(piece.length + pieceBytes)) pieces.push(piece);
    }
  } catch {
    throw new ThrownOpenAiError('invalid_request');
  }
  if (refused === undefined && !place.startWork(sizeBytes * workFactor)) refuse('overloaded');
  if (refused !== undefined) throw new ThrownOpenAiError(refused);
  return Buffer.concat(pieces, sizeBytes);
}

/** Whether the headers declare uncompressed JSON, with or without a charset. */
export function isPlainJson(headers: {
  readonly 'content-type'?: string | undefined;
  readonly 'content-encoding'?: string | undefined;
}): boolean {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  return /^application\/json\s*(?:;|$)/i.test(type) && encoding.toLowerCase() === 'identity';
}
