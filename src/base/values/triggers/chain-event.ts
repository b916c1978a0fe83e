import type { AbiEvent } from 'viem';
import {
  decodeEventLog,
  encodeAbiParameters,
  keccak256,
  parseAbiItem,
  stringToBytes,
  toEventSelector,
  toEventSignature,
} from 'viem/utils';
import { type Hex, parseAddress } from '../primitives.ts';

/** What a node is asked for in `eth_getLogs`: at each place a topic, some of them, or any. */
export type Topics = readonly (Hex | readonly Hex[] | null)[];

/** A log as far as its event is concerned. */
export interface LogContent {
  readonly topics: readonly Hex[];
  readonly data: Hex;
}

/** Decoded values: integers as decimal text, addresses in lower case, bytes as hex. */
export type JsonValue = string | boolean | readonly JsonValue[] | { readonly [name: string]: JsonValue };

/** An event that contracts emit, and the values of its indexed arguments that are wanted. */
export interface ChainEvent {
  /** Such as `Transfer(address,address,uint256)`. */
  readonly signature: string;
  readonly name: string;
  readonly topics: Topics;
  /** The arguments by name, or by place where the event does not name one; undefined if the log is of another event. */
  decode(log: LogContent): Readonly<Record<string, JsonValue>> | undefined;
}

export type EventAnswer =
  | { readonly kind: 'event'; readonly event: ChainEvent }
  /** The mistake, in the form that follows the key's name. */
  | { readonly kind: 'mistake'; readonly at: 'event' | 'filters'; readonly text: string };

/** The values that a filter takes for one argument. */
const mostValues = 100;
/** A log has four topics, and the first one is the event. */
const mostIndexed = 3;

/**
 * Reads an event as Solidity declares it, such as `event Transfer(address indexed from, address indexed to, uint256 value)`, and the
 * values of its indexed arguments: one, or a list of which any fits.
 */
export function readChainEvent(text: string, filters: Readonly<Record<string, unknown>>): EventAnswer {
  const item = parseEvent(text);
  if (typeof item === 'string') return { kind: 'mistake', at: 'event', text: item };
  const inputs: readonly Parameter[] = item.inputs.map((input, at) => ({
    ...input,
    name: input.name || String(at),
  }));
  if (new Set(inputs.map(({ name }) => name)).size !== inputs.length)
    return { kind: 'mistake', at: 'event', text: 'has two arguments of one name' };
  const topics = readTopics(toEventSelector(item), inputs, filters);
  if (typeof topics === 'string') return { kind: 'mistake', at: 'filters', text: topics };
  const abi = [{ ...item, inputs } as AbiEvent];
  const event: ChainEvent = {
    signature: toEventSignature(item),
    name: item.name,
    topics,
    decode: (log) => (fits(topics, log) ? decode(abi, inputs, log) : undefined),
  };
  return { kind: 'event', event };
}

/** Whether a log is among those that were asked for. */
export function fits(topics: Topics, { topics: own }: Pick<LogContent, 'topics'>): boolean {
  return topics.every((wanted, at) => {
    const topic = own[at];
    if (wanted === null) return true;
    return topic !== undefined && (typeof wanted === 'string' ? wanted === topic : wanted.includes(topic));
  });
}

/** The event, or the mistake in the text. */
function parseEvent(text: string): AbiEvent | string {
  if (!/^event\s/.test(text)) return 'must begin with "event ", as Solidity declares it';
  if (/\)\s*anonymous\s*;?$/.test(text)) return 'is anonymous: its logs do not name it';
  try {
    const item = parseAbiItem(text) as AbiEvent;
    const indexed = item.inputs.filter((input) => input.indexed);
    return indexed.length > mostIndexed ? `has more than ${mostIndexed} indexed arguments` : item;
  } catch (error) {
    const [reason = ''] = error instanceof Error ? error.message.split('\n') : [];
    return `is not an event as Solidity declares it: ${reason}`;
  }
}

/** An argument of an event, or a part of one. */
interface Parameter {
  readonly type: string;
  readonly name?: string | undefined;
  readonly indexed?: boolean | undefined;
  readonly components?: readonly Parameter[] | undefined;
}

/** The topics, or the mistake in the filters. */
function readTopics(
  selector: Hex,
  inputs: readonly Parameter[],
  filters: Readonly<Record<string, unknown>>,
): Topics | string {
  const indexed = inputs.filter((input) => input.indexed);
  for (const name of Object.keys(filters))
    if (!indexed.some((input) => input.name === name))
      return `names "${name}", which is not an indexed argument of the event`;
  const topics: (Hex | readonly Hex[] | null)[] = [selector];
  for (const input of indexed) {
    const { name = '' } = input;
    const wanted = filters[name];
    if (wanted === undefined) topics.push(null);
    else {
      const values = Array.isArray(wanted) ? (wanted as readonly unknown[]) : [wanted];
      if (values.length === 0 || values.length > mostValues)
        return `must have 1 to ${mostValues} values for "${name}"`;
      const words = values.map((value) => topicOf(input, value));
      const wrong = words.findIndex((word) => word === undefined);
      if (wrong !== -1)
        return `has a value for "${name}" that is not of the type ${input.type}: ${shownValue(values[wrong])}`;
      topics.push(words as Hex[]);
    }
  }
  while (topics.at(-1) === null) topics.pop();
  return topics;
}

/** As JSON, but that a large integer is one too. */
function shownValue(value: unknown): string {
  return typeof value === 'bigint' ? String(value) : JSON.stringify(value);
}

/** The topic of an argument's value; undefined if the value is not of its type. */
function topicOf({ type }: Parameter, value: unknown): Hex | undefined {
  try {
    if (type === 'string') return typeof value === 'string' ? keccak256(stringToBytes(value)) : undefined;
    if (type === 'bytes') return isBytes(value) ? keccak256(value) : undefined;
    const typed = typedValue(type, value);
    return typed === undefined ? undefined : encodeAbiParameters([{ type }], [typed]);
  } catch {
    return undefined;
  }
}

function typedValue(type: string, value: unknown): unknown {
  if (type === 'bool') return typeof value === 'boolean' ? value : undefined;
  if (type === 'address') return typeof value === 'string' ? parseAddress(value) : undefined;
  if (/^bytes\d+$/.test(type))
    return isBytes(value) && value.length === 2 + 2 * Number(type.slice('bytes'.length)) ? value : undefined;
  if (!/^u?int\d*$/.test(type)) return undefined;
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  return typeof value === 'string' && /^(?:-?\d{1,78}|0x[0-9a-f]{1,64})$/i.test(value)
    ? BigInt(value)
    : undefined;
}

function isBytes(value: unknown): value is Hex {
  return typeof value === 'string' && /^0x(?:[0-9a-f]{2})*$/i.test(value);
}

function decode(
  abi: readonly AbiEvent[],
  inputs: readonly Parameter[],
  { topics, data }: LogContent,
): Readonly<Record<string, JsonValue>> | undefined {
  try {
    const { args } = decodeEventLog({ abi, topics: topics as [Hex, ...Hex[]], data, strict: true });
    const values = (args ?? {}) as Readonly<Record<string, unknown>>;
    return Object.fromEntries(
      inputs.map((input) => [input.name, toJson(shown(input), values[input.name ?? ''])]),
    );
  } catch {
    // another event with the same selector: other arguments of it are indexed
    return undefined;
  }
}

/** An indexed argument of dynamic size is in the log as its hash alone. */
function shown(input: Parameter): Parameter {
  const isHashed = input.indexed && /^(?:string|bytes|tuple)$|\[/.test(input.type);
  return isHashed ? { ...input, type: 'bytes32' } : input;
}

function toJson(parameter: Parameter, value: unknown): JsonValue {
  const { type } = parameter;
  const list = /^(.*)\[\d*\]$/.exec(type);
  if (list)
    return (value as readonly unknown[]).map((item) => toJson({ ...parameter, type: list[1] ?? '' }, item));
  if (type === 'tuple') return tupleToJson(parameter, value);
  if (typeof value === 'boolean') return value;
  return type === 'address' ? String(value).toLowerCase() : String(value);
}

function tupleToJson({ components = [] }: Parameter, value: unknown): JsonValue {
  const isList = Array.isArray(value);
  const valueOf = (name: string | undefined, at: number): unknown =>
    isList ? (value as readonly unknown[])[at] : (value as Readonly<Record<string, unknown>>)[name ?? ''];
  const entries = components.map((component, at): [string, JsonValue] => [
    component.name || String(at),
    toJson(component, valueOf(component.name, at)),
  ]);
  return Object.fromEntries(entries);
}
