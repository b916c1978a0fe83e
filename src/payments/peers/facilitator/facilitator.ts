import { z } from 'zod';
import { isHex32, parseAddress, type Address, type Hex } from '../../../base/values/primitives.ts';
import { type GasSponsoringKey, gasSponsoringKeys } from '../../../base/values/gas-sponsoring.ts';
import type { RotatingSecret } from '../../../base/values/rotating-secret.ts';
import { type CallEnd, createCircuitBreaker, type OnCircuit, type PaymentSource } from './circuit-breaker.ts';
import { type AuthorizeCall, authorizationHeaders, type FacilitatorCall } from './facilitator-auth.ts';
import { createRequestAuthorization } from './request-key.ts';
import type { SupportedKind } from '../../rules/supported-kinds.ts';
import { jsonValue } from '../../../base/values/bounded-json.ts';
import {
  createHttpPool,
  isSuccess,
  type HttpAnswer,
  type HttpRequest,
} from '../../../base/peers/http/http.ts';

/** The body of `/verify` and `/settle`: the payment, and the offer it accepts. */
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
      /** As answered: the caller compares it with the payment's. */
      readonly network: string;
      readonly payer?: Address;
    }
  /** `success: false`: not the same as unpaid. No `transaction` means that the facilitator named none at all. */
  | { readonly kind: 'failed'; readonly reason: string; readonly transaction?: Hex }
  /** Nothing reached the facilitator. */
  | { readonly kind: 'not_sent'; readonly cause: string; readonly error: Error }
  /** Money may have moved. `transaction` is a hint to look up, never evidence. */
  | {
      readonly kind: 'unknown';
      readonly cause: string;
      readonly transaction?: Hex;
      readonly error?: Error;
    };

export interface SettleOptions {
  /** The payment was sent to be settled before: a further failure does not count against the facilitator. */
  readonly isRepeated?: boolean;
  readonly source?: PaymentSource;
}

export type SupportedAnswer =
  | {
      readonly kind: 'kinds';
      readonly kinds: readonly SupportedKind[];
      /** The approvals of Permit2 that it submits for payers. */
      readonly approvals: readonly GasSponsoringKey[];
    }
  | Unavailable;

interface Unavailable {
  readonly kind: 'unavailable';
  readonly cause: string;
  readonly error?: Error;
}

export interface Facilitator {
  /** The kinds it settles; malformed entries are left out. Within the verify time-out. */
  supported(): Promise<SupportedAnswer>;
  /**
   * Asks once, no retry. A valid payment reserves nothing. Unavailable with `circuit_open` while the circuit is open; after its
   * pause the facilitator is first asked what it supports.
   */
  verify(request: FacilitatorRequest, source?: PaymentSource): Promise<VerifyAnswer>;
  /**
   * Asks once, no retry: the outcome may be unknown, and the caller resolves it from the chain. Sent also while the circuit is
   * open.
   */
  settle(request: FacilitatorRequest, options?: SettleOptions): Promise<SettleAnswer>;
  /** Whether the circuit breaker is open: no payment should be started. */
  isCircuitOpen(): boolean;
  /** How long its last settlements took, as a moving average of the answered ones; 0 before the first. */
  typicalSettleMs(): number;
  /** Waits for running requests, then drops the connections. */
  close(): Promise<void>;
}

export interface FacilitatorOptions {
  /** `/verify`, `/settle` and `/supported` are appended to its path. */
  readonly url: string;
  /**
   * The bearer tokens in force. A request that is answered 401 with the first is sent once more with the second: a facilitator
   * that refuses the sender has not touched the payment, and a payment can move its money only once.
   */
  readonly bearers?: () => RotatingSecret | undefined;
  /** Called when the second token was accepted. */
  readonly onSecondBearer?: () => void;
  /** Its headers override the bearer's. If it fails or times out, nothing is sent. */
  readonly authorize?: AuthorizeCall;
  readonly verifyTimeoutMs: number;
  readonly settleTimeoutMs: number;
  /** Most simultaneous connections (2,000): over HTTP/1.1 each payment that waits for an answer takes one. */
  readonly connections?: number;
  readonly onCircuit?: OnCircuit;
  /** The circuit's clock, in milliseconds; default `performance.now()`. */
  readonly now?: () => number;
}

type FacilitatorAnswer =
  | HttpAnswer
  | {
      readonly kind: 'failed';
      readonly cause: 'authorization_failed';
      readonly sent: false;
      readonly error: Error;
    };

const maxAnswerBytes = 64 * 1024;
const defaultConnections = 2_000;
/** The share of the newest settlement in the average of their durations. */
const newestShare = 1 / 8;

/**
 * A client of one facilitator. Its answers are unsigned claims: parsed here, judged by the caller.
 * @throws TypeError for an invalid URL
 */
export function createFacilitator(options: FacilitatorOptions): Facilitator {
  const { verifyTimeoutMs, settleTimeoutMs } = options;
  const pool = createHttpPool(options.url, {
    connections: options.connections ?? defaultConnections,
    http2: true,
  });
  // payments that keep the facilitator busy must not make a probe fail
  const probePool = createHttpPool(options.url, { connections: 1 });
  const breaker = createCircuitBreaker(options);
  const ask = asker(options, (request) => pool.request(request));
  const askProbe = asker(options, (request) => probePool.request(request));
  let probing: Promise<SupportedAnswer> | undefined;
  let typicalSettleMs = 0;

  const supported = (): Promise<SupportedAnswer> =>
    judged(() => askProbe('supported', verifyTimeoutMs), readSupported, breaker.begin('supported'));
  /** One probe at a time. */
  const probe = (): Promise<SupportedAnswer> =>
    (probing ??= supported().finally(() => (probing = undefined)));
  const confirmFailures = (): void => {
    if (!breaker.isOpen() && breaker.needsProbe()) void probe();
  };

  return {
    supported,
    async verify(request, source) {
      if (breaker.isOpen() && breaker.needsProbe()) await probe();
      const end = breaker.begin('verify');
      if (!end) return unavailable('circuit_open');
      const answer = await judged(() => ask('verify', verifyTimeoutMs, request), readVerify, end, source);
      confirmFailures();
      return answer;
    },
    async settle(request, { isRepeated = false, source } = {}) {
      const end = breaker.begin(isRepeated ? 'settle_again' : 'settle');
      const startedMs = performance.now();
      const answer = await judged(() => ask('settle', settleTimeoutMs, request), readSettle, end, source);
      if (answer.kind === 'settled')
        typicalSettleMs += (performance.now() - startedMs - typicalSettleMs) * newestShare;
      confirmFailures();
      return answer;
    },
    isCircuitOpen: () => breaker.isOpen(),
    typicalSettleMs: () => typicalSettleMs,
    async close() {
      await Promise.all([pool.close(), probePool.close()]);
    },
  };
}

/** One exchange: authorized, then sent, both within the one deadline. */
function asker(
  { url, bearers, onSecondBearer, authorize }: FacilitatorOptions,
  send: (request: HttpRequest) => Promise<HttpAnswer>,
) {
  const { host, pathname } = new URL(url);
  const prefix = pathname.replace(/\/+$/, '');
  const authorizationOf = createRequestAuthorization();

  return async (
    operation: FacilitatorCall['operation'],
    timeoutMs: number,
    question?: FacilitatorRequest,
  ): Promise<FacilitatorAnswer> => {
    const endsAt = performance.now() + timeoutMs;
    const call = {
      method: question ? 'POST' : 'GET',
      host,
      path: `${prefix}/${operation}`,
      operation,
    } as const;
    const signed = authorize ? await authorizationHeaders(authorize, call, endsAt) : {};
    if (signed instanceof Error) {
      return { kind: 'failed', cause: 'authorization_failed', sent: false, error: signed };
    }
    const sendWith = (bearer: string | undefined): Promise<HttpAnswer> =>
      send({
        method: call.method,
        path: call.path,
        headers: {
          ...(bearer !== undefined && { authorization: authorizationOf(bearer, call) }),
          ...signed,
          ...(question && { 'content-type': 'application/json' }),
        },
        ...(question && { body: bodyOf(question) }),
        timeoutMs: Math.ceil(endsAt - performance.now()),
        maxResponseBytes: maxAnswerBytes,
      });
    const [bearer, second] = bearers?.() ?? [];
    const answer = await sendWith(bearer);
    if (second === undefined || !isUnauthorized(answer) || performance.now() >= endsAt) return answer;
    const repeated = await sendWith(second);
    // a request that did not arrive says less than the refusal before it
    if (repeated.kind === 'failed' && !repeated.sent) return answer;
    if (!isUnauthorized(repeated)) onSecondBearer?.();
    return repeated;
  };
}

function isUnauthorized(answer: HttpAnswer): boolean {
  return answer.kind === 'response' && answer.status === 401;
}

function bodyOf({ x402Version, paymentPayload, paymentRequirements }: FacilitatorRequest): string {
  return JSON.stringify({ x402Version, paymentPayload, paymentRequirements });
}

/** Reports to the circuit breaker how a call ended, also if this client failed. */
async function judged<T extends VerifyAnswer | SettleAnswer | SupportedAnswer>(
  send: () => Promise<FacilitatorAnswer>,
  read: (answer: FacilitatorAnswer) => T,
  end: ((end: CallEnd) => void) | undefined,
  source?: PaymentSource,
): Promise<T> {
  let ended: CallEnd = 'inconclusive';
  try {
    const sent = await send();
    const answer = read(sent);
    ended = endOf(answer, isProvokable(sent) ? source : undefined);
    return answer;
  } finally {
    end?.(ended);
  }
}

/** Payments that keep all connections busy also provoke the time-outs of requests that are never sent. */
function isProvokable(answer: FacilitatorAnswer): boolean {
  return answer.kind === 'response' || answer.sent || answer.cause === 'timeout';
}

/** Faults of this client or of one request: what one payer sent must not block all others. */
const inconclusiveCauses = new Set(['closed', 'invalid_request', 'status_400', 'status_413', 'status_422']);

function endOf(
  answer: VerifyAnswer | SettleAnswer | SupportedAnswer,
  provokedBy: PaymentSource | undefined,
): CallEnd {
  if (answer.kind !== 'unavailable' && answer.kind !== 'unknown' && answer.kind !== 'not_sent')
    return 'answered';
  if (inconclusiveCauses.has(answer.cause)) return 'inconclusive';
  return { failed: answer.cause, provokedBy };
}

// The other fields are read one by one below: a malformed payer must not hide a refusal.
const verifySchema = z.object({
  isValid: z.boolean(),
  invalidReason: z.unknown().optional(),
  payer: z.unknown().optional(),
});

function readVerify(answer: FacilitatorAnswer): VerifyAnswer {
  if (answer.kind === 'failed') return unavailable(answer.cause, answer.error);
  const parsed = verifySchema.safeParse(jsonValue(answer.body));
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

function readSettle(answer: FacilitatorAnswer): SettleAnswer {
  if (answer.kind === 'failed') {
    const { cause, error } = answer;
    return { kind: answer.sent ? 'unknown' : 'not_sent', cause, error };
  }
  const parsed = settleSchema.safeParse(jsonValue(answer.body));
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
  // a malformed hash may belong to a broadcast transaction: read as none, it would mean a failure before broadcast
  if (read === undefined) return { kind: 'unknown', cause: 'malformed' };
  return { kind: 'failed', reason: reasonOf(errorReason), ...read };
}

const kindSchema = z.object({
  x402Version: z.int().min(1).max(1000),
  scheme: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  network: z.string().regex(/^[A-Za-z0-9:*_-]{1,64}$/),
});
const account = z.string().transform((text) => parseAddress(text));
const submitterSchema = z.object({ extra: z.object({ facilitatorAddress: account }) });
const signersSchema = z.record(z.string(), z.array(account).max(1_000)).catch({});
const supportedSchema = z.object({
  kinds: z.array(z.unknown()),
  signers: z.unknown().optional(),
  extensions: z.array(z.unknown()).catch([]),
});

function readSupported(answer: FacilitatorAnswer): SupportedAnswer {
  if (answer.kind === 'failed') return unavailable(answer.cause, answer.error);
  if (!isSuccess(answer.status)) return unavailable(`status_${answer.status}`);
  const parsed = supportedSchema.safeParse(jsonValue(answer.body));
  if (!parsed.success) return unavailable('malformed', parsed.error);
  const signers = signersSchema.parse(parsed.data.signers ?? {});
  const kinds = parsed.data.kinds.flatMap((given): SupportedKind[] => {
    const kind = kindSchema.safeParse(given).data;
    const named = submitterSchema.safeParse(given).data?.extra.facilitatorAddress;
    if (!kind || !named) return kind ? [kind] : [];
    const others = [...(signers[kind.network] ?? []), ...(signers['eip155:*'] ?? [])];
    return [{ ...kind, submitters: [...new Set([named, ...others.flatMap((one) => one ?? [])])] }];
  });
  const { extensions } = parsed.data;
  return { kind: 'kinds', kinds, approvals: gasSponsoringKeys.filter((key) => extensions.includes(key)) };
}

function unavailable(cause: string, error?: Error): Unavailable {
  return { kind: 'unavailable', cause, ...(error && { error }) };
}

/** A proxy's error page is reported by its status, a wrong body under a 2xx as malformed. */
function malformedCause(status: number): string {
  return isSuccess(status) ? 'malformed' : `status_${status}`;
}

function reasonOf(reason: unknown): string {
  return typeof reason === 'string' && /^[a-z0-9_]{1,100}$/.test(reason) ? reason : 'unrecognized';
}

function networkOf(network: unknown): string | undefined {
  return typeof network === 'string' && /^[a-z0-9:_-]{1,64}$/.test(network) ? network : undefined;
}

/** Undefined for a payer that is not an address; an absent one is accepted. */
function readPayer(payer: unknown): { readonly payer?: Address } | undefined {
  if (payer === undefined || payer === null) return {};
  const address = typeof payer === 'string' ? parseAddress(payer) : undefined;
  return address && { payer: address };
}

/** Absent, null and the empty string all mean none; undefined for any other text that is not a hash. */
function readTransaction(transaction: unknown): { readonly transaction?: Hex } | undefined {
  if (transaction === undefined || transaction === null || transaction === '') return {};
  const hash = typeof transaction === 'string' ? transaction.toLowerCase() : '';
  return isHex32(hash) ? { transaction: hash } : undefined;
}
