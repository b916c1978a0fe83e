import { createChatReader, readChatError, type ChatError } from '../../rules/chat-answer.ts';
import { jsonProblem, jsonValue } from '../../../base/values/bounded-json.ts';
import { type Fault, faultOf, type UpstreamCompleted } from './answer.ts';
import type { Exchange } from './exchange.ts';
import { readAside, type ReadAnswer } from './side-thread.ts';

/** How much of an error's body is read: the status is enough to classify it. */
const maxErrorBytes = 64 * 1024;
const maxErrorSilenceMs = 2000;
/** A longer answer is read in a separate thread. */
const maxBytesHere = 256 * 1024;

/** A body, and when its first byte arrived. */
interface Body {
  readonly kind: 'body';
  readonly bytes: Buffer;
  readonly firstByteAtMs: number;
}

/** Reads an answer that is not a stream. */
export async function readWhole(
  exchange: Exchange,
  startedAtMs: number,
  maxAnswerBytes: number,
): Promise<UpstreamCompleted | Fault> {
  const body = await collect(exchange, maxAnswerBytes);
  if (body.kind === 'fault') return body;
  if (isBlank(body.bytes)) return faultOf('empty', 'The body is empty');
  const read = isShort(body.bytes) ? readHere(body.bytes) : await readAside(body.bytes);
  if (read === undefined) return faultOf('too_large', 'The body takes too long to read');
  const { reading, progress } = read;
  if (reading.kind === 'error') return faultOf('error_object', reading.error.message, reading.error);
  if (reading.kind === 'malformed') return faultOf('malformed', 'The body is not an answer');
  return {
    kind: 'completed',
    body: body.bytes,
    ...progress,
    firstByteMs: body.firstByteAtMs - startedAtMs,
    latencyMs: performance.now() - startedAtMs,
  };
}

function readHere(bytes: Buffer): ReadAnswer {
  const reader = createChatReader();
  const reading = reader.readBody(bytes.toString('utf8'));
  return { reading, progress: reader.progress };
}

/** Some milliseconds of work at most; all others wait meanwhile. */
function isShort(bytes: Buffer): boolean {
  return bytes.length <= maxBytesHere && jsonProblem(bytes) === undefined;
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));
}

/** The error in a refusal's body, if it has one and arrives in time. */
export async function readError(exchange: Exchange): Promise<ChatError | undefined> {
  exchange.begin(maxErrorSilenceMs);
  const body = await collect(exchange, maxErrorBytes, maxErrorSilenceMs);
  return body.kind === 'body' ? readChatError(jsonValue(body.bytes)) : undefined;
}

async function collect(exchange: Exchange, maxBytes: number, silenceMs?: number): Promise<Body | Fault> {
  const pieces: Buffer[] = [];
  let sizeBytes = 0;
  let firstByteAtMs: number | undefined;
  for (;;) {
    const step = await exchange.next();
    if (step.kind === 'fault') return step;
    if (step.kind === 'end') {
      const bytes = Buffer.concat(pieces, sizeBytes);
      return { kind: 'body', bytes, firstByteAtMs: firstByteAtMs ?? performance.now() };
    }
    if (firstByteAtMs === undefined) {
      firstByteAtMs = performance.now();
      exchange.begin(silenceMs);
    }
    sizeBytes += step.bytes.length;
    if (sizeBytes > maxBytes) {
      exchange.stop('too_large', `The body is longer than ${maxBytes} bytes`);
      return faultOf('too_large', `The body is longer than ${maxBytes} bytes`);
    }
    pieces.push(step.bytes);
  }
}
