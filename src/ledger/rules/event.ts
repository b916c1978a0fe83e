import { z } from 'zod';
import { breakEvents } from './break-events.ts';
import { callEvents } from './call-events.ts';
import { chatEvents } from './chat-events.ts';
import { type Check, compileCheck, compileText, type Write } from './compiled-check.ts';
import { consoleEvents } from './console-events.ts';
import { costEvents } from './cost-events.ts';
import { creditEvents } from './credit-events.ts';
import type { EventDescriptor, FollowUpTopic } from './descriptor.ts';
import { identityEvents } from './identity-events.ts';
import { invoiceEvents } from './invoice-events.ts';
import { operatorEvents } from './operator-events.ts';
import { paymentEvents } from './payment-events.ts';
import { periodEvents } from './period-events.ts';
import { rateEvents } from './rate-events.ts';
import { recoveryEvents } from './recovery-events.ts';
import { refundEvents } from './refund-events.ts';
import { requestEvents } from './request-events.ts';
import { retentionEvents } from './retention-events.ts';
import { spendEvents } from './spend-events.ts';
import { transferEvents } from './transfer-events.ts';
import { triggerEvents } from './trigger-events.ts';

/**
 * Every type of event that the ledger may hold, by family, as one closed, versioned union. Only checked values are recorded:
 * no free text from a client or a peer, amounts as decimal strings, times as Unix seconds.
 */
export const eventDescriptors = {
  ...paymentEvents,
  ...callEvents,
  ...triggerEvents,
  ...requestEvents,
  ...operatorEvents,
  ...consoleEvents,
  ...transferEvents,
  ...refundEvents,
  ...costEvents,
  ...breakEvents,
  ...periodEvents,
  ...invoiceEvents,
  ...recoveryEvents,
  ...chatEvents,
  ...creditEvents,
  ...identityEvents,
  ...spendEvents,
  ...retentionEvents,
  ...rateEvents,
} as const;

type Descriptors = typeof eventDescriptors;
export type EventType = keyof Descriptors;
export type EventData<T extends EventType> = z.infer<Descriptors[T]['schema']>;
export const eventTypes = Object.keys(eventDescriptors) as readonly EventType[];

type Aspect = Exclude<keyof EventDescriptor, 'schema' | 'transition'>;
/** The types whose descriptor says something other than `none` of an aspect. */
export type TypesWith<A extends Aspect> = {
  [T in EventType]: Descriptors[T][A] extends 'none' ? never : T;
}[EventType];

export function hasAspect<A extends Aspect, E extends { readonly type: EventType }>(
  event: E,
  aspect: A,
): event is Extract<E, { readonly type: TypesWith<A> }> {
  return eventDescriptors[event.type][aspect] !== 'none';
}

/** The types whose descriptor names a follow-up. */
export type TypesFollowedBy<Topic extends FollowUpTopic> = {
  [T in EventType]: Descriptors[T]['followUps'] extends readonly (infer Listed)[]
    ? Topic extends Listed
      ? T
      : never
    : never;
}[EventType];

type ListAspect = 'readModels' | 'counters' | 'followUps';

/** The types whose descriptor lists a value in an aspect. */
export function typesListing<A extends ListAspect>(
  aspect: A,
  value: Exclude<EventDescriptor[A], 'none'>[number],
): EventType[] {
  return eventTypes.filter((type) => {
    const listed: EventDescriptor[ListAspect] = eventDescriptors[type][aspect];
    return listed !== 'none' && (listed as readonly string[]).includes(value);
  });
}

/** An event before it is recorded. */
export type LedgerEvent = { [T in EventType]: { readonly type: T; readonly data: EventData<T> } }[EventType];
export type EventOf<T extends EventType> = Extract<RecordedEvent, { type: T }>;
/** An event as recorded. `at` is RFC 3339 UTC in milliseconds, from the database's clock. */
export type RecordedEvent = LedgerEvent & {
  readonly seq: number;
  readonly stream: string;
  readonly version: number;
  readonly at: string;
};

/** The version of every schema. A changed meaning gets a new number, never a new reading of old bytes. */
const eventSchemaVersion = 1;

interface Compiled {
  readonly check: Check;
  readonly text: Write;
}

const compiled = new Map<EventType, Compiled>();

/** Compiled at the first use: most programs read few types. */
function compiledOf(type: EventType): Compiled {
  const known = compiled.get(type);
  if (known) return known;
  const { schema } = eventDescriptors[type];
  const made = { check: compileCheck(schema), text: compileText(schema) };
  compiled.set(type, made);
  return made;
}

/**
 * Checks an event that this program wrote or will write. A check that was compiled decides nearly always; what it refuses, the
 * schema itself refuses with its reasons.
 * @throws ZodError
 */
function checkData(type: EventType, data: unknown): void {
  if (!compiledOf(type).check(data)) eventDescriptors[type].schema.parse(data);
}

/**
 * The canonical JSON of an event's data, as it will be hashed.
 * @throws ZodError if the data do not match their schema: a bug of ours, found before it is permanent
 */
export function encodeEventData(event: LedgerEvent): string {
  checkData(event.type, event.data);
  return compiledOf(event.type).text(event.data);
}

const leafSchema = z.object({
  at: z.string(),
  data: z.record(z.string(), z.unknown()),
  schema: z.literal(eventSchemaVersion),
  seq: z.int().positive(),
  stream: z.string(),
  type: z.string(),
  version: z.int().positive(),
});
const isLeaf = compileCheck(leafSchema);

/**
 * Reads an event from its leaf, as bytes or text.
 * @throws ZodError, TypeError or SyntaxError if it is not an event of this version: a ledger is never guessed at
 */
export function decodeLeaf(leaf: Buffer | string): RecordedEvent {
  const json: unknown = JSON.parse(String(leaf));
  const { at, data, seq, stream, type, version } = isLeaf(json)
    ? (json as z.infer<typeof leafSchema>)
    : leafSchema.parse(json);
  if (!isEventType(type)) throw new TypeError(`unknown event type ${type} at seq ${seq}`);
  checkData(type, data);
  return { seq, stream, version, at, type, data } as unknown as RecordedEvent;
}

/** Whether an error says that an event or a stream cannot be read, rather than that it could not be fetched. */
export function isUnreadable(error: unknown): boolean {
  return [z.ZodError, SyntaxError, TypeError, RangeError].some((kind) => error instanceof kind);
}

export function isEventType(type: string): type is EventType {
  return Object.hasOwn(eventDescriptors, type);
}
