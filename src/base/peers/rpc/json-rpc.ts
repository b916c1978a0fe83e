import { z } from 'zod';
import { jsonValue } from '../../values/bounded-json.ts';
import { createHttpPool, isSuccess, type HttpAnswer, type HttpPool, type HttpRequest } from '../http/http.ts';
import { AnswerReader, type ReadingLimits } from './answer-reader.ts';

/** One method with its parameters, the schema of its result, and the part of an answer that is read. */
export type RpcCall<T> = {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly result: z.ZodType<T>;
} & (
  | { readonly maxResponseBytes: number }
  /** Where a peer decides its length: `result` sees what an AnswerReader keeps, an array of elements or an outline. */
  | { readonly reading: ReadingLimits<unknown> }
);

/** There is no answer: never a "no". */
export interface RpcUnavailable {
  readonly kind: 'unavailable';
  /** A reason code of the gateway's own. */
  readonly cause: string;
  /** For the log only: may quote the peer. */
  readonly error?: Error;
}

export type RpcAnswer<T> = { readonly kind: 'answer'; readonly value: T } | RpcUnavailable;

/** The node understood the call and answered with an error: the cause is `rpc_error`. */
export class RpcError extends Error {
  readonly code: number;
  /** The node's message, at most 200 characters. */
  readonly reason: string;
  /** The contract's revert data, where the node sends it: a selector and its arguments. */
  readonly data: string | undefined;

  constructor(code: number, message: string, data?: string) {
    const reason = message.slice(0, 200);
    super(`${code}: ${reason}`);
    this.name = 'RpcError';
    this.code = code;
    this.reason = reason;
    this.data = data;
  }
}

export interface Rpc {
  /** One exchange, never retried; never rejects. */
  call<T>(call: RpcCall<T>, timeoutMs: number): Promise<RpcAnswer<T>>;
  /** Waits for running calls, then drops the connections. */
  close(): Promise<void>;
}

/**
 * JSON-RPC 2.0 over one POST a call.
 * @throws TypeError for an invalid URL
 */
export function createRpc(url: string): Rpc {
  const pool: HttpPool = createHttpPool(url);
  const { pathname, search } = new URL(url);
  return {
    async call(call, timeoutMs) {
      const { method, params, result } = call;
      const request = {
        method: 'POST',
        path: pathname + search,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
        timeoutMs,
      } as const;
      if ('reading' in call) return readPieces(pool, request, call.reading, result);
      return readAnswer(await pool.request({ ...request, maxResponseBytes: call.maxResponseBytes }), result);
    },
    close: () => pool.close(),
  };
}

export function unavailable(cause: string, error?: Error): RpcUnavailable {
  return { kind: 'unavailable', cause, ...(error && { error }) };
}

const envelopeSchema = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.literal(1).nullish(),
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string(), data: z.unknown().optional() }).nullish(),
});

/** The limit for the kept part of an answer that is not a result: a refusal with its own status. */
const heldBytes = 64 * 1024;

async function readPieces<T>(
  pool: HttpPool,
  request: Omit<HttpRequest, 'maxResponseBytes' | 'overflow'>,
  reading: ReadingLimits<unknown>,
  result: z.ZodType<T>,
): Promise<RpcAnswer<T>> {
  const reader = new AnswerReader(reading);
  const add = (piece: Buffer): Promise<void> | undefined => {
    reader.write(piece);
    return reader.problem && Promise.reject(new Error(`The answer is ${reader.problem}`));
  };
  const overflow = { maxBytes: reading.maxBytes, add };
  const answer = await pool.request({ ...request, maxResponseBytes: heldBytes, overflow });
  if (answer.kind === 'failed') return unavailable(reader.problem ?? answer.cause, answer.error);
  if (!isSuccess(answer.status)) return unavailable(`status_${answer.status}`);
  if (!answer.hasOverflowed) reader.write(answer.body);
  return reader.problem ? unavailable(reader.problem) : readEnvelope(reader.end(), result, reader.kept);
}

function readAnswer<T>(answer: HttpAnswer, result: z.ZodType<T>): RpcAnswer<T> {
  if (answer.kind === 'failed') return unavailable(answer.cause, answer.error);
  if (!isSuccess(answer.status)) return unavailable(`status_${answer.status}`);
  return readEnvelope(jsonValue(answer.body), result);
}

/** @param elements those of a result that is an array, if they were read apart from it */
function readEnvelope<T>(answer: unknown, result: z.ZodType<T>, elements?: readonly unknown[]): RpcAnswer<T> {
  const envelope = envelopeSchema.safeParse(answer);
  if (!envelope.success) return unavailable('malformed', envelope.error);
  const { id, error } = envelope.data;
  if (error) {
    const data = typeof error.data === 'string' ? error.data : undefined;
    return unavailable('rpc_error', new RpcError(error.code, error.message, data));
  }
  const isArray = Array.isArray(envelope.data.result);
  const value = result.safeParse(elements && isArray ? elements : envelope.data.result);
  if (id !== 1 || !value.success) return unavailable('malformed', value.error);
  return { kind: 'answer', value: value.data };
}
