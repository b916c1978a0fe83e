import { readAnswerPrice } from '../base/values/answer-price.ts';
import { ResultTooLarge } from './errors.ts';

/** Bytes with a content type of the author's choice. */
export interface TypedResult {
  readonly contentType: string;
  readonly body: string | Uint8Array | ResultStream;
}

/** A Node.js `Readable`, a web `ReadableStream`, or any other iterable of bytes and text that comes piece by piece. */
export type ResultStream = AsyncIterable<Uint8Array | string>;

/**
 * What a handler may return: text, bytes, a stream, `{contentType, body}`, nothing, or anything that JSON can say. A stream is read to its
 * end into memory while its run lasts.
 */
export type Result = undefined | void | null | string | number | boolean | Uint8Array | TypedResult | object;

/** A result on its way. */
export interface EncodedResult {
  readonly contentType: string;
  readonly body: Buffer;
}

/** A result with what it costs. */
class PricedResult {
  readonly result: Result;
  readonly price: string;

  constructor(result: Result, price: string) {
    this.result = result;
    this.price = price;
  }
}

/**
 * A result with what it costs, for a handler of `on.route` whose route charges what its answer costs: at most the price of the route.
 * @param price dollars, as `0.006 USD`, or wei as digits where the price of the route is in wei; `0` costs nothing
 * @throws TypeError for any other text
 */
export function priced(result: Result, price: string): Result {
  if (!readAnswerPrice(price)) throw new TypeError(`"${price}" is no price, such as "0.006 USD", or wei`);
  return new PricedResult(result, price);
}

/** What a handler returned, apart from what it costs. */
export function unpriced(returned: Result): { readonly result: Result; readonly price: string | undefined } {
  return returned instanceof PricedResult ? returned : { result: returned, price: undefined };
}

const contentTypeForm = /^[!-~][ -~]{0,199}$/;
/** JSON.stringify would make `{}` of them, and someone paid for it. */
const notJson = [Response, Blob, Map, Set];

/**
 * Undefined if there is no result.
 * @throws ResultTooLarge, or TypeError for a value that is not a result
 */
export async function encodeResult(result: Result, maxBytes: number): Promise<EncodedResult | undefined> {
  if (result === undefined) return undefined;
  const { contentType, body } = typed(result);
  if (!contentTypeForm.test(contentType)) throw new TypeError('the result has a content type out of form');
  // a string is at least as long in bytes: a text that cannot fit is not even copied
  if (isStream(body)) return { contentType, body: await collect(body, maxBytes) };
  if (body.length > maxBytes) throw tooLarge(maxBytes);
  const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : view(body);
  if (bytes.length > maxBytes) throw tooLarge(maxBytes);
  return { contentType, body: bytes };
}

function typed(result: NonNullable<Result> | null): TypedResult {
  if (typeof result === 'string') return { contentType: 'text/plain; charset=utf-8', body: result };
  if (result instanceof Uint8Array) return { contentType: 'application/octet-stream', body: result };
  if (isTyped(result)) return result;
  if (isStream(result)) return { contentType: 'application/octet-stream', body: result };
  if (
    notJson.some((type) => result instanceof type) ||
    ArrayBuffer.isView(result) ||
    result instanceof ArrayBuffer
  )
    throw new TypeError(
      `${result?.constructor.name} is not a result: return its text, bytes or plain values`,
    );
  const body = JSON.stringify(result) as string | undefined;
  if (body === undefined) throw new TypeError(`a ${typeof result} is not a result`);
  return { contentType: 'application/json', body };
}

/** Exactly these two keys: any other object is JSON. */
function isTyped(result: Result): result is TypedResult {
  if (typeof result !== 'object' || result === null || Object.keys(result).length !== 2) return false;
  if (!('contentType' in result) || !('body' in result)) return false;
  const { contentType, body } = result;
  const isBody = typeof body === 'string' || body instanceof Uint8Array || isStream(body);
  return typeof contentType === 'string' && isBody;
}

function isStream(value: unknown): value is ResultStream {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** One that is too long is not read to its end. */
async function collect(stream: ResultStream, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of stream) {
    const next: Buffer = typeof piece === 'string' ? Buffer.from(piece, 'utf8') : Buffer.from(piece);
    bytes += next.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    pieces.push(next);
  }
  return Buffer.concat(pieces, bytes);
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function tooLarge(maxBytes: number): ResultTooLarge {
  return new ResultTooLarge(`the result is longer than ${maxBytes} bytes`);
}
