import { maxJobIndex, maxServiceId } from '../base/values/job.ts';
import { triggerKinds } from '../base/values/triggers/trigger.ts';
import type { JobCall, ReceivedCall, Trigger } from './call.ts';
import type { Result } from './result.ts';
import { InvalidInput } from './errors.ts';

/** Of paid calls, unless it names another trigger, or several. */
export type Handler<Input = undefined, Kind extends Trigger = 'x402'> = (
  call: JobCall<Input, Kind>,
) => Promise<Result> | Result;

export interface JobOptions<Schema extends AnySchema | undefined> {
  readonly serviceId: number;
  readonly jobIndex: number;
  /** A handler for each trigger that may call this job. A call by any other trigger is refused: it becomes a dead letter. */
  readonly on: { readonly [Kind in Trigger]?: Handler<OutputOf<Schema>, Kind> };
  /** What a body must be, as JSON: a zod schema, or any other Standard Schema. What does not fit is refused. */
  readonly input?: Schema;
  /** Simultaneous runs of this job. Default: the runner's. */
  readonly concurrency?: number | undefined;
  /** When a run is aborted and its call retried. Default: the runner's. */
  readonly timeoutMs?: number | undefined;
}

/** A job with its handlers, ready for `createRunner`. */
export interface Job {
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly concurrency: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly handlers: ReadonlyMap<string, WiredHandler>;
}

/** A handler with its schema's check. */
type WiredHandler = (call: ReceivedCall & { readonly signal: AbortSignal }) => Promise<Result>;

const triggers: ReadonlySet<string> = new Set<Trigger>(['x402', ...triggerKinds]);

/**
 * Wires a job's handlers, each to the trigger that may call it.
 * @throws TypeError for ids that no job can have, and for a job without a handler
 */
export function job<Schema extends AnySchema | undefined = undefined>(options: JobOptions<Schema>): Job {
  const { serviceId, jobIndex, on, input: schema, concurrency, timeoutMs } = options;
  requireWhole('serviceId', serviceId, 0, maxServiceId);
  requireWhole('jobIndex', jobIndex, 0, maxJobIndex);
  if (concurrency !== undefined) requireWhole('concurrency', concurrency, 1, 10_000);
  if (timeoutMs !== undefined) requireTimeout(timeoutMs);
  const handlers = new Map<string, WiredHandler>();
  for (const [trigger, handler] of Object.entries(on)) {
    if (!triggers.has(trigger) || typeof handler !== 'function')
      throw new TypeError(`job ${serviceId}/${jobIndex}: on.${trigger} is not a handler of a trigger`);
    handlers.set(trigger, async (call) => {
      const input = schema ? await readInput(schema, call.body) : undefined;
      // readCall has checked that it has all that a call of its trigger has
      const whole = { ...call, input } as unknown as JobCall<OutputOf<Schema>, Trigger>;
      return (handler as Handler<OutputOf<Schema>, Trigger>)(whole);
    });
  }
  if (handlers.size === 0)
    throw new TypeError(
      `job ${serviceId}/${jobIndex} has no handler: wire on.x402, on.webhook, on.cron, on.chain or on.route`,
    );
  return { serviceId, jobIndex, concurrency, timeoutMs, handlers };
}

/** @throws TypeError for a time that setTimeout would take as 0 */
export function requireTimeout(timeoutMs: number): void {
  requireWhole('timeoutMs', timeoutMs, 1, 2 ** 31 - 1);
}

export function requireWhole(name: string, value: number, least: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new TypeError(`${name} must be a whole number from ${least} to ${most}, not ${value}`);
}

/** A Standard Schema, which zod's schemas are: only this much of it is used, so that no version is forced. */
interface AnySchema<Output = unknown> {
  readonly '~standard': {
    readonly types?: { readonly output: Output } | undefined;
    readonly validate: (value: unknown) => Checked<Output> | Promise<Checked<Output>>;
  };
}

type Checked<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a handler gets as `input`; undefined if the job has no schema. */
type OutputOf<Schema> = Schema extends AnySchema<infer Output> ? Output : undefined;

const issuesTold = 5;
/** Keys come from the client, and may be long. */
const mistakesLength = 500;

/**
 * Parses a body as JSON and checks it.
 * @throws InvalidInput naming the mistakes, without the values
 */
async function readInput(schema: AnySchema, body: Buffer): Promise<unknown> {
  const checked = await schema['~standard'].validate(parse(body));
  if (!checked.issues) return checked.value;
  const mistakes = checked.issues.slice(0, issuesTold).map(sentence).join('; ');
  throw new InvalidInput(mistakes.slice(0, mistakesLength).toWellFormed());
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new InvalidInput('the body is not JSON in UTF-8');
  }
}

function sentence({ message, path = [] }: Issue): string {
  const place = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return place === '' ? message : `${place}: ${message}`;
}
