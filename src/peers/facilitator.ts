import { z } from 'zod';
import { isHex32, parseAddress, type Address, type Hex } from '../domain/primitives.ts';
import { createHttpPool, isSuccess, parseJson, type HttpAnswer, type HttpPool } from './http.ts';

/** What both `/verify` and `/settle` take: the payment as the client sent it, and what was asked for it. */
export interface FacilitatorRequest {
  readonly x402Version: 1 | 2;
  readonly paymentPayload: Readonly<Record<string, unknown>>;
  readonly paymentRequirements: Readonly<Record<string, unknown>>;
}

export type VerifyAnswer =
  | { readonly kind: 'valid'; readonly payer?: Address }
  | { readonly kind: 'invalid'; readonly reason: string }
  | Unavailable;

export type SettleAnswer =
  | {
      readonly kind: 'settled';
      readonly transaction: Hex;
      /** As answered: the caller compares it with the payload's. */
      readonly network: string;
      readonly payer?: Address;
    }
  /** `success: false`: not the same as unpaid. No `transaction` means that the facilitator named none at all. */
  | { readonly kind: 'failed'; readonly reason: string; readonly transaction?: Hex }
  /** Certain that nothing reached the facilitator. */
  | { readonly kind: 'not_sent'; readonly cause: string; readonly error: Error }
  /** Money may have moved. `transaction` is a hint to look up, never evidence. */
  | {
      readonly kind: 'unknown';
      readonly cause: string;
      readonly transaction?: Hex;
      readonly error?: Error;
    };

export interface SupportedKind {
  readonly x402Version: number;
  readonly scheme: string;
  readonly network: string;
}

export type SupportedAnswer =
  | { readonly kind: 'kinds'; readonly kinds: readonly SupportedKind[] }
  | Unavailable;

interface Unavailable {
  readonly kind: 'unavailable';
  readonly cause: string;
  readonly error?: Error;
}

export interface Facilitator {
  /** The kinds it settles; entries that are not understood are left out. Within the verify time-out. */
  supported(): Promise<SupportedAnswer>;
  /** Asks once, no retry. A valid payment reserves nothing. */
  verify(request: FacilitatorRequest): Promise<VerifyAnswer>;
  /** Asks once, no retry: the outcome may be unknown, and the caller resolves it from the chain. */
  settle(request: FacilitatorRequest): Promise<SettleAnswer>;
  /** Waits for running requests, then drops the connections. */
  close(): Promise<void>;
}

export interface FacilitatorOptions {
  /** `/verify`, `/settle` and `/supported` are appended to its path. */
  readonly url: string;
  readonly bearer?: string;
  readonly verifyTimeoutMs: number;
  readonly settleTimeoutMs: number;
}

const maxAnswerBytes = 64 * 1024;

/**
 * A client of one facilitator. Its answers are unsigned claims: parsed here, judged by the caller.
 * @throws TypeError when the URL is none: a mistake of the configuration
 */
export function createFacilitator(options: FacilitatorOptions): Facilitator {
  const pool = createHttpPool(options.url);
  const prefix = new URL(options.url).pathname.replace(/\/+$/, '');
  const headers = authorization(options.bearer);
  const limits = { maxResponseBytes: maxAnswerBytes };
  const post = (path: string, request: FacilitatorRequest, timeoutMs: number) =>
    postJson(pool, prefix + path, { headers, request, timeoutMs });

  return {
    async supported() {
      const timeoutMs = options.verifyTimeoutMs;
      const path = `${prefix}/supported`;
      return readSupported(await pool.request({ method: 'GET', path, headers, timeoutMs, ...limits }));
    },
    async verify(request) {
      return readVerify(await post('/verify', request, options.verifyTimeoutMs));
    },
    async settle(request) {
      return readSettle(await post('/settle', request, options.settleTimeoutMs));
    },
    close: () => pool.close(),
  };
}

function authorization(bearer: string | undefined): Record<string, string> {
  return bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
}

interface Post {
  readonly headers: Readonly<Record<string, string>>;
  readonly request: FacilitatorRequest;
  readonly timeoutMs: number;
}

function postJson(pool: HttpPool, path: string, post: Post): Promise<HttpAnswer> {
  const { x402Version, paymentPayload, paymentRequirements } = post.request;
  return pool.request({
    method: 'POST',
    path,
    headers: { ...post.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ x402Version, paymentPayload, paymentRequirements }),
    timeoutMs: post.timeoutMs,
    maxResponseBytes: maxAnswerBytes,
  });
}

// Fields beside the verdict are read one by one below: a strange payer must not hide an honest refusal.
const verifySchema = z.object({
  isValid: z.boolean(),
  invalidReason: z.unknown().optional(),
  payer: z.unknown().optional(),
});

function readVerify(answer: HttpAnswer): VerifyAnswer {
  if (answer.kind === 'failed') return unavailable(answer.cause, answer.error);
  const parsed = verifySchema.safeParse(parseJson(answer.body));
  if (!parsed.success) return unavailable(malformedCause(answer.status), parsed.error);
  const { isValid, invalidReason, payer } = parsed.data;
  if (!isValid) return { kind: 'invalid', reason: reasonOf(invalidReason) };
  if (!isSuccess(answer.status)) return unavailable(`status_${answer.status}`);
  const read = readPayer(payer);
  return read ? { kind: 'valid', ...read } : unavailable('malformed');
}

const settleSchema = z.object({
  success: z.boolean(),
  transaction: z.unknown().optional(),
  network: z.unknown().optional(),
  payer: z.unknown().optional(),
  errorReason: z.unknown().optional(),
});
type SettleBody = z.infer<typeof settleSchema>;

function readSettle(answer: HttpAnswer): SettleAnswer {
  if (answer.kind === 'failed') {
    const { cause, error } = answer;
    return { kind: answer.sent ? 'unknown' : 'not_sent', cause, error };
  }
  const parsed = settleSchema.safeParse(parseJson(answer.body));
  if (!parsed.success) {
    return { kind: 'unknown', cause: malformedCause(answer.status), error: parsed.error };
  }
  return parsed.data.success
    ? readSuccess(parsed.data, answer.status)
    : readFailure(parsed.data.errorReason, parsed.data.transaction);
}

function readSuccess(body: SettleBody, status: number): SettleAnswer {
  const read = readTransaction(body.transaction);
  const payer = readPayer(body.payer);
  const network = networkOf(body.network);
  if (!isSuccess(status)) return { kind: 'unknown', cause: `status_${status}`, ...read };
  if (read?.transaction === undefined || payer === undefined || network === undefined) {
    return { kind: 'unknown', cause: 'malformed', ...read };
  }
  return { kind: 'settled', transaction: read.transaction, network, ...payer };
}

function readFailure(errorReason: unknown, transaction: unknown): SettleAnswer {
  const read = readTransaction(transaction);
  // A mangled hash may be a broadcast one: told as "no transaction", it would read as a failure before broadcast.
  if (read === undefined) return { kind: 'unknown', cause: 'malformed' };
  return { kind: 'failed', reason: reasonOf(errorReason), ...read };
}

const kindSchema = z.object({
  x402Version: z.int().min(1).max(1000),
  scheme: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  network: z.string().regex(/^[A-Za-z0-9:*_-]{1,64}$/),
});
const supportedSchema = z.object({ kinds: z.array(z.unknown()) });

function readSupported(answer: HttpAnswer): SupportedAnswer {
  if (answer.kind === 'failed') return unavailable(answer.cause, answer.error);
  if (!isSuccess(answer.status)) return unavailable(`status_${answer.status}`);
  const parsed = supportedSchema.safeParse(parseJson(answer.body));
  if (!parsed.success) return unavailable('malformed', parsed.error);
  const kinds = parsed.data.kinds.flatMap((kind) => kindSchema.safeParse(kind).data ?? []);
  return { kind: 'kinds', kinds };
}

function unavailable(cause: string, error?: Error): Unavailable {
  return { kind: 'unavailable', cause, ...(error && { error }) };
}

/** A page of a proxy is told by its status, a wrong body under a 2xx by itself. */
function malformedCause(status: number): string {
  return isSuccess(status) ? 'malformed' : `status_${status}`;
}

function reasonOf(reason: unknown): string {
  return typeof reason === 'string' && /^[a-z0-9_]{1,100}$/.test(reason) ? reason : 'unrecognized';
}

function networkOf(network: unknown): string | undefined {
  return typeof network === 'string' && /^[a-z0-9:_-]{1,64}$/.test(network) ? network : undefined;
}

/** No payer is fine; one that is no address is a lie: undefined. */
function readPayer(payer: unknown): { readonly payer?: Address } | undefined {
  if (payer === undefined || payer === null) return {};
  const address = typeof payer === 'string' ? parseAddress(payer) : undefined;
  return address && { payer: address };
}

/** Absent, null and the empty string all mean none; anything else that is no hash: undefined. */
function readTransaction(transaction: unknown): { readonly transaction?: Hex } | undefined {
  if (transaction === undefined || transaction === null || transaction === '') return {};
  const hash = typeof transaction === 'string' ? transaction.toLowerCase() : '';
  return isHex32(hash) ? { transaction: hash } : undefined;
}
