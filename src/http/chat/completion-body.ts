import type { Readable } from 'node:stream';
import type { BodyReservation } from '../server/body-memory.ts';
import { ThrownOpenAiError } from './openai-errors.ts';

/** What a piece takes beside its bytes: a body may come byte by byte. */
const pieceBytes = 512;
/** Bytes, text, values, text again and its bytes are held of a body while it is worked on, text with two bytes a character. */
const workFactor = 8;

/**
 * Reads a body as bytes. One that is too large, or finds no room, is read to its end all the same and thrown away: a client
 * that is still sending would not see the refusal. The server's time-out for requests bounds that.
 * @param enter its place, which it leaves when it is refused
 * @throws ThrownOpenAiError `body_too_large`, `overloaded`; `invalid_request` where the client stopped in the middle
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

/** Whether a body's headers say that it is JSON as it is: with a charset or without, but not compressed. */
export function isPlainJson(headers: {
  readonly 'content-type'?: string | undefined;
  readonly 'content-encoding'?: string | undefined;
}): boolean {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  return /^application\/json\s*(?:;|$)/i.test(type) && encoding.toLowerCase() === 'identity';
}
