import { parseTraceparent } from '../domain/values/traceparent.ts';

/** What started a call: the value of `X-X402-ORIGIN`. A paid request is `x402`. */
export type Trigger = 'x402' | (string & Record<never, never>);

/** One call, as a handler gets it. Delivery is at least once. */
export interface JobCall<Input = undefined> {
  /** Names the call in logs and in the operator's commands. */
  readonly callId: number;
  /** The same when the call is delivered again, and never that of another payment: deduplicate by it. Hex with 0x. */
  readonly idempotencyKey: string;
  /** 1 for the first delivery. */
  readonly attempt: number;
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly trigger: Trigger;
  /** The name of the paid quote, `0x…`: under it the ledger keeps what happened. */
  readonly quoteDigest: string;
  /** CAIP-2, as `eip155:8453`. */
  readonly paymentNetwork: string;
  /** The token's address, `0x…` in lower case: with the network, its only name. */
  readonly paymentAsset: string;
  /** The token's symbol. */
  readonly paymentToken: string;
  /** The authorized caller, for restricted jobs only. */
  readonly caller?: string;
  /**
   * The gateway's span of this delivery, where it traces requests (W3C Trace Context): the parent of your own. Not signed: for traces
   * alone.
   */
  readonly traceparent?: string;
  readonly contentType: string | undefined;
  /** The client's bytes, untouched. */
  readonly body: Buffer;
  /** The body, parsed and checked, where the job has a schema. */
  readonly input: Input;
  /** Aborts when the result of this run is no longer needed: time-out, lost lease, or the runner stops. */
  readonly signal: AbortSignal;
}

/** A call as it arrived, pushed or leased. */
export type ReceivedCall = Omit<JobCall, 'input' | 'signal'>;

/** What names a call in a log. */
export type CallFacts = Pick<
  JobCall,
  'callId' | 'idempotencyKey' | 'attempt' | 'serviceId' | 'jobIndex' | 'trigger' | 'quoteDigest'
>;

export function factsOf({
  callId,
  idempotencyKey,
  attempt,
  serviceId,
  jobIndex,
  trigger,
  quoteDigest,
}: CallFacts): CallFacts {
  return { callId, idempotencyKey, attempt, serviceId, jobIndex, trigger, quoteDigest };
}

/**
 * Reads a call's metadata: headers of a push, or the map of a lease. Undefined when required metadata is missing or
 * malformed.
 * @param traceparent as it came: a malformed one is left out
 */
export function readCall(
  metadata: Readonly<Record<string, unknown>>,
  contentType: string | undefined,
  body: Buffer,
  traceparent?: unknown,
): ReceivedCall | undefined {
  const named = new Map(Object.entries(metadata).map(([name, value]) => [name.toLowerCase(), value]));
  const text = (name: string): string | undefined => {
    const value = named.get(name);
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const whole = (name: string): number | undefined => {
    const value = text(name);
    return value !== undefined && /^(?:0|[1-9]\d{0,15})$/.test(value) ? safe(Number(value)) : undefined;
  };
  const callId = whole('x-net-call-id');
  const idempotencyKey = text('x-net-idempotency-key');
  const attempt = whole('x-net-attempt');
  const serviceId = whole('x-net-service-id');
  const jobIndex = whole('x-net-job-index');
  const trigger = text('x-x402-origin');
  const quoteDigest = text('x-x402-quote-digest');
  const paymentNetwork = text('x-x402-payment-network');
  const paymentAsset = text('x-x402-payment-asset');
  const paymentToken = text('x-x402-payment-token');
  const caller = text('x-net-caller');
  if (callId === undefined || attempt === undefined || serviceId === undefined || jobIndex === undefined)
    return undefined;
  if (!idempotencyKey || !trigger || !quoteDigest) return undefined;
  if (!paymentNetwork || !paymentAsset || !paymentToken) return undefined;
  return {
    callId,
    idempotencyKey,
    attempt,
    serviceId,
    jobIndex,
    trigger,
    quoteDigest,
    paymentNetwork,
    paymentAsset,
    paymentToken,
    ...(caller ? { caller } : {}),
    ...(typeof traceparent === 'string' && parseTraceparent(traceparent) ? { traceparent } : {}),
    contentType,
    body,
  };
}

function safe(value: number): number | undefined {
  return Number.isSafeInteger(value) ? value : undefined;
}
