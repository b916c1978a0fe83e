import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { JobsContext } from '../use-cases/context.ts';
import { type ByteRange, ResultUnreadableError } from '../../calls/use-cases/large-result.ts';
import { isReceiptToken } from '../../payments/use-cases/receipt-keys.ts';
import { findResult, type ResultFile } from '../../calls/use-cases/result-file.ts';
import { isHex32 } from '../../base/values/primitives.ts';
import { endInTime } from '../../base/http/slow-readers.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { addressOf, bearerToken } from '../../base/http/request-values.ts';
import { createWaitPlaces } from '../../base/http/wait-places.ts';

/** Simultaneous downloads: each holds a piece of its result in memory. */
const downloads = { maxWaitingRequests: 64, maxWaitingRequestsPerClient: 8 };

/**
 * GET /x402/receipts/{quote_digest}/result: the bytes of the runner's result, for its receipt token; a part of them for one `Range`. The
 * content type is the runner's: no browser shows it as a page of this address.
 */
export function resultRoute(current: () => JobsContext) {
  const places = createWaitPlaces(() => downloads);
  return async (app: FastifyInstance): Promise<void> => {
    app.get<{ Params: { quote_digest: string } }>(
      '/x402/receipts/:quote_digest/result',
      async (request, reply) => {
        const context = current();
        const digest = request.params.quote_digest.toLowerCase();
        const token = bearerToken(request) ?? '';
        if (!isHex32(digest) || !isReceiptToken(context.receiptKeys, digest, token, context.log))
          return sendRefusal(request, reply, 'invalid_receipt_token');
        noteFacts(request, { quote_digest: digest });
        const leave = places.take(addressOf(request));
        if (!leave) return sendRefusal(request, reply, 'too_many_waits');
        reply.raw.once('close', leave);
        const file = await findResult(context, digest);
        if (!file) return sendRefusal(request, reply, 'result_not_stored');
        endInTime(reply.raw);
        return sendFile(request, reply, file);
      },
    );
  };
}

async function sendFile(request: FastifyRequest, reply: FastifyReply, file: ResultFile) {
  const { contentType = 'application/octet-stream', bytes, sha256 } = file;
  const { range: asked, 'if-range': ifRange } = request.headers;
  const etag = `"${sha256}"`;
  const part = ifRange === undefined || ifRange === etag ? rangeOf(asked, bytes) : undefined;
  reply.header('etag', etag).header('cache-control', 'no-store');
  if (part === 'outside') return reply.code(416).header('content-range', `bytes */${bytes}`).send();
  const range = part ?? { from: 0, end: bytes };
  // a HEAD reads nothing of what it would not send
  const pieces = request.method === 'HEAD' ? none : await begin(file.read(range));
  if (!pieces) return sendRefusal(request, reply, 'result_store_unavailable');
  if (part) reply.code(206).header('content-range', `bytes ${part.from}-${part.end - 1}/${bytes}`);
  reply.headers({
    'content-type': contentType,
    'content-disposition': 'attachment',
    'content-security-policy': "default-src 'none'; sandbox",
    'accept-ranges': 'bytes',
    'content-length': String(range.end - range.from),
  });
  return reply.send(Readable.from(pieces, { objectMode: false }));
}

const none: readonly Buffer[] = [];

/** Reads the first piece; undefined if it cannot be read, so that this can still be answered. */
async function begin(pieces: AsyncGenerator<Buffer>): Promise<AsyncIterable<Buffer> | undefined> {
  try {
    const first = await pieces.next();
    return first.done ? pieces : follow(first.value, pieces);
  } catch (error) {
    if (error instanceof ResultUnreadableError) return undefined;
    throw error;
  }
}

async function* follow(first: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}

/** The one range that is asked for (RFC 9110); undefined for none, for several, and for one out of form: then the whole is sent. */
function rangeOf(header: string | undefined, bytes: number): ByteRange | 'outside' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '')
    return last === '0' || bytes === 0 ? 'outside' : { from: Math.max(0, bytes - Number(last)), end: bytes };
  const from = Number(first);
  const end = last === '' ? bytes : Math.min(bytes, Number(last) + 1);
  if (last !== '' && Number(last) < from) return undefined;
  return from < bytes ? { from, end } : 'outside';
}
