import { z } from 'zod';
import { createHttpPool, isSuccess, parseJson, type HttpAnswer, type HttpPool } from '../http/http.ts';

/** One method with its parameters and the schema of its result. */
export interface RpcCall<T> {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly result: z.ZodType<T>;
  readonly maxResponseBytes: number;
}

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
    async call({ method, params, result, maxResponseBytes }, timeoutMs) {
      const answer = await pool.request({
        method: 'POST',
        path: pathname + search,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
        timeoutMs,
        maxResponseBytes,
      });
      return readAnswer(answer, result);
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

function readAnswer<T>(answer: HttpAnswer, result: z.ZodType<T>): RpcAnswer<T> {
  if (answer.kind === 'failed') return unavailable(answer.cause, answer.error);
  if (!isSuccess(answer.status)) return unavailable(`status_${answer.status}`);
  const envelope = envelopeSchema.safeParse(parseJson(answer.body));
  if (!envelope.success) return unavailable('malformed', envelope.error);
  const { id, error } = envelope.data;
  if (error) {
    const data = typeof error.data === 'string' ? error.data : undefined;
    return unavailable('rpc_error', new RpcError(error.code, error.message, data));
  }
  const value = result.safeParse(envelope.data.result);
  if (id !== 1 || !value.success) return unavailable('malformed', value.error);
  return { kind: 'answer', value: value.data };
}
