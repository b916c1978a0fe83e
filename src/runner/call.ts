import type { TriggerKind } from '../base/values/triggers/trigger.ts';
import { maxResultHeader } from '../base/values/result-parts.ts';
import { parseTraceparent } from '../base/values/traceparent.ts';
import type { ReportProgress } from './progress.ts';

/** What makes a call: a paid request is `x402`, each other one a trigger that the gateway's operator has configured. */
export type Trigger = 'x402' | TriggerKind;

/** What calls of every trigger have. */
interface AnyCall<Input> {
  /** Names the call in logs and in the operator's commands. */
  readonly callId: number;
  /** The same when the call is delivered again, and never that of another one: deduplicate by it. Hex with 0x. */
  readonly idempotencyKey: string;
  /** 1 for the first delivery. */
  readonly attempt: number;
  readonly serviceId: number;
  readonly jobIndex: number;
  /**
   * The gateway's span of this delivery, if it traces requests (W3C Trace Context): the parent of your own. Not signed: for traces
   * alone.
   */
  readonly traceparent?: string;
  readonly contentType: string | undefined;
  /** The bytes as the client or the trigger sent them. */
  readonly body: Buffer;
  /** The longest result that the gateway takes, in bytes. */
  readonly maxResultBytes: number;
  /** The body, parsed and checked, if the job has a schema. */
  readonly input: Input;
  /** Tells the waiting client the progress. Sent once a second at most; a value that cannot be sent is dropped. */
  readonly progress: ReportProgress;
  /** Aborts when the result of this run is no longer needed: time-out, lost lease, or the runner stops. */
  readonly signal: AbortSignal;
}

/** A call that a client has paid for. */
export interface PaidCall<Input = undefined> extends AnyCall<Input> {
  readonly trigger: 'x402';
  /** The name of the paid quote, `0x…`: the ledger keeps its history under it. */
  readonly quoteDigest: string;
  /** CAIP-2, as `eip155:8453`. */
  readonly paymentNetwork: string;
  /** The token's address, `0x…` in lower case: with the network, its only name. */
  readonly paymentAsset: string;
  /** The token's symbol. */
  readonly paymentToken: string;
  /** The authorized caller, for restricted jobs only. */
  readonly caller?: string;
  readonly triggerName?: undefined;
  readonly triggerId?: undefined;
}

/** A call that a trigger of the operator made: no payer paid for it. */
export interface TriggeredCall<
  Input = undefined,
  Kind extends TriggerKind = TriggerKind,
> extends AnyCall<Input> {
  readonly trigger: Kind;
  /** The trigger's name in the gateway's configuration. */
  readonly triggerName: string;
  /** What this firing of the trigger is identified by: a webhook's id, a schedule's time, the place of a log on a chain. */
  readonly triggerId: string;
  readonly quoteDigest?: undefined;
  readonly paymentNetwork?: undefined;
  readonly paymentAsset?: undefined;
  readonly paymentToken?: undefined;
  readonly caller?: undefined;
}

/** One call, as a handler gets it. Delivery is at least once. */
export type JobCall<Input = undefined, Kind extends Trigger = 'x402'> = Kind extends TriggerKind
  ? TriggeredCall<Input, Kind>
  : PaidCall<Input>;

/** A call as it arrived, pushed or leased; its trigger may be one that this version does not know. */
export interface ReceivedCall extends Omit<AnyCall<undefined>, 'input' | 'signal' | 'progress'> {
  readonly trigger: string;
  readonly quoteDigest?: string;
  readonly triggerName?: string;
}

/** What names a call in a log. */
export type CallFacts = Pick<
  ReceivedCall,
  | 'callId'
  | 'idempotencyKey'
  | 'attempt'
  | 'serviceId'
  | 'jobIndex'
  | 'trigger'
  | 'quoteDigest'
  | 'triggerName'
>;

export function factsOf(call: CallFacts): CallFacts {
  const { callId, idempotencyKey, attempt, serviceId, jobIndex, trigger, quoteDigest, triggerName } = call;
  return {
    callId,
    idempotencyKey,
    attempt,
    serviceId,
    jobIndex,
    trigger,
    ...(quoteDigest === undefined ? {} : { quoteDigest }),
    ...(triggerName === undefined ? {} : { triggerName }),
  };
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
  const origin = readOrigin(text);
  const maxResultBytes = whole(maxResultHeader) ?? untoldMaxResultBytes;
  if (callId === undefined || attempt === undefined || serviceId === undefined || jobIndex === undefined)
    return undefined;
  if (!idempotencyKey || !origin) return undefined;
  return {
    callId,
    idempotencyKey,
    attempt,
    serviceId,
    jobIndex,
    ...origin,
    ...(typeof traceparent === 'string' && parseTraceparent(traceparent) ? { traceparent } : {}),
    contentType,
    body,
    maxResultBytes,
  };
}

/** A gateway of an earlier version does not tell: its default. */
const untoldMaxResultBytes = 1_048_576;

type CallOrigin =
  | Pick<PaidCall, 'trigger' | 'quoteDigest' | 'paymentNetwork' | 'paymentAsset' | 'paymentToken' | 'caller'>
  | (Pick<TriggeredCall, 'triggerName' | 'triggerId'> & { readonly trigger: string });

/** What made the call. A gateway of a version that has no other triggers names none for its paid calls. */
function readOrigin(text: (name: string) => string | undefined): CallOrigin | undefined {
  const origin = text('x-x402-origin');
  const trigger = text('x-net-trigger') ?? origin;
  if (!trigger || (origin !== undefined && origin !== trigger)) return undefined;
  if (trigger !== 'x402') {
    const triggerName = text('x-net-trigger-name');
    const triggerId = text('x-net-trigger-id');
    return triggerName && triggerId && !origin ? { trigger, triggerName, triggerId } : undefined;
  }
  const quoteDigest = text('x-x402-quote-digest');
  const paymentNetwork = text('x-x402-payment-network');
  const paymentAsset = text('x-x402-payment-asset');
  const paymentToken = text('x-x402-payment-token');
  const caller = text('x-net-caller');
  if (!origin || !quoteDigest || !paymentNetwork || !paymentAsset || !paymentToken) return undefined;
  return {
    trigger,
    quoteDigest,
    paymentNetwork,
    paymentAsset,
    paymentToken,
    ...(caller ? { caller } : {}),
  };
}

function safe(value: number): number | undefined {
  return Number.isSafeInteger(value) ? value : undefined;
}
