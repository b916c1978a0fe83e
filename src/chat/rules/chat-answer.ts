import { type JsonBounds, jsonBounds, jsonValue } from '../../base/values/bounded-json.ts';
import { type ChatUsage, readUsage } from './chat-usage.ts';

/** An upstream's error, shortened. The text is the upstream's: for people and logs only. */
export interface ChatError {
  readonly message: string;
  readonly type?: string;
  readonly param?: string;
  readonly code?: string;
}

/** The state of an answer so far. */
export interface ChatProgress {
  /** The last that was given. */
  readonly usage?: ChatUsage;
  /** A given usage has a count that is not a whole number; `usage` lacks it. */
  readonly isUsageMalformed?: true;
  /** Why the first choice ended: `stop`, `length`, `tool_calls`, …, or `other` for any other text. */
  readonly finishReason?: string;
  /** Every choice that began has ended. */
  readonly isFinished: boolean;
  /** The text that the model wrote, to estimate the tokens if no usage is reported; of an endless stream its beginning. */
  readonly written: string;
}

export type ChatReading =
  /** `isUsageOnly`: it carries the usage and no choice, and may be left out for a client that asked for no usage. */
  | { readonly kind: 'part'; readonly isUsageOnly: boolean }
  | { readonly kind: 'error'; readonly error: ChatError }
  | { readonly kind: 'malformed' };

/** Collects the state of one answer from its chunks in order or from its whole body. */
export interface ChatReader {
  /** Reads the data of one stream event (not `[DONE]`). What is malformed or an error changes nothing. */
  readChunk(data: string): ChatReading;
  /** Reads a whole body. One without choices is malformed: there is no answer in it. */
  readBody(body: string): ChatReading;
  readonly progress: ChatProgress;
}

/** UTF-16 units: a million tokens, more than any model writes. */
const maxWritten = 4_194_304;
/** As many as a request may ask for. */
const maxChoices = 128;

type Fields = Readonly<Record<string, unknown>>;

/** @param bounds of each chunk, and of a whole body; one beyond them is malformed */
export function createChatReader(bounds: JsonBounds = jsonBounds): ChatReader {
  const finishByIndex = new Map<number, string | undefined>();
  let usage: ChatUsage | undefined;
  let usageOfChoice: ChatUsage | undefined;
  let isUsageMalformed = false;
  let written = '';

  const readChoice = (choice: Fields): void => {
    const index = isCount(choice['index']) ? choice['index'] : 0;
    finishByIndex.set(index, readFinish(choice['finish_reason']) ?? finishByIndex.get(index));
    // some servers send both, with the same in them
    if (written.length < maxWritten) written += longest(textOf(choice['delta']), textOf(choice['message']));
  };
  const countsOf = (...places: readonly unknown[]): ChatUsage | undefined => {
    const readings = places.map(readUsage);
    isUsageMalformed ||= readings.some(({ kind }) => kind === 'malformed');
    return readings.find((reading) => reading.kind === 'counted')?.usage;
  };
  const read = (text: string, isWhole: boolean): ChatReading => {
    const value = jsonValue(text, bounds);
    if (!isFields(value)) return { kind: 'malformed' };
    const error = readChatError(value);
    if (error) return { kind: 'error', error };
    const choices = readChoices(value, isWhole);
    if (choices === undefined) return { kind: 'malformed' };
    for (const choice of choices) readChoice(choice);
    const given = countsOf(value['usage'], isFields(value['x_groq']) ? value['x_groq']['usage'] : undefined);
    usage = given ?? usage;
    usageOfChoice = countsOf(choices[0]?.['usage']) ?? usageOfChoice;
    return { kind: 'part', isUsageOnly: choices.length === 0 && given !== undefined };
  };

  return {
    readChunk: (data) => read(data, false),
    readBody: (body) => read(body, true),
    get progress() {
      const finishReason = finishByIndex.get(0);
      const finishes = [...finishByIndex.values()];
      // Kimi reports it in the choice: of several it may be that choice's alone
      const counted = usage ?? (finishes.length === 1 ? usageOfChoice : undefined);
      return {
        ...(counted && { usage: counted }),
        ...(isUsageMalformed && { isUsageMalformed }),
        ...(finishReason !== undefined && { finishReason }),
        isFinished: finishes.length > 0 && finishes.every((finish) => finish !== undefined),
        written,
      };
    },
  };
}

/** The error that a parsed body or chunk is: OpenAI's envelope, a bare sentence in it, or vLLM's flat form. */
export function readChatError(value: unknown): ChatError | undefined {
  if (!isFields(value)) return undefined;
  const { error } = value;
  if (isFields(error)) return toError(error);
  if (typeof error === 'string') return toError({ message: error });
  return value['object'] === 'error' ? toError(value) : undefined;
}

function toError(fields: Fields): ChatError {
  const { code: given } = fields;
  const message = cut(fields['message'], 2000) ?? '';
  const type = cut(fields['type'], 100);
  const param = cut(fields['param'], 100);
  const code = cut(typeof given === 'number' ? String(given) : given, 100);
  return {
    message,
    ...(type !== undefined && { type }),
    ...(param !== undefined && { param }),
    ...(code !== undefined && { code }),
  };
}

/** Text on one line, not longer than a person reads. */
function cut(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') return undefined;
  return value
    .replaceAll(/\p{Cc}+/gu, ' ')
    .slice(0, maxLength)
    .toWellFormed();
}

/** A chunk may have no choices (`[]` or null); undefined when the value is neither a chunk nor a whole answer. */
function readChoices(value: Fields, isWhole: boolean): readonly Fields[] | undefined {
  const { choices } = value;
  if (Array.isArray(choices)) {
    const isSound = choices.every(isChoice) && (choices.length > 0 || !isWhole);
    return isSound ? choices : undefined;
  }
  const isChunk = choices === null || (choices === undefined && isFields(value['usage']));
  return isChunk && !isWhole ? [] : undefined;
}

function isChoice(value: unknown): value is Fields {
  return isFields(value) && !(isCount(value['index']) && value['index'] >= maxChoices);
}

function readFinish(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  return /^[A-Za-z_]{1,32}$/.test(value) ? value : 'other';
}

/** Where a message holds words that no model wrote. */
const namesOnly: ReadonlySet<string> = new Set(['role', 'id', 'type', 'index']);

/**
 * Every text in a delta or a message, in its order and whatever its name, so that nothing is delivered that an estimate would
 * miss. Without recursion: an upstream nests as deep as it likes.
 */
function textOf(message: unknown): string {
  let text = '';
  const left: unknown[] = [message];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === 'string') text += value;
    else if (typeof value === 'object' && value !== null)
      for (const member of membersOf(value).toReversed()) left.push(member);
  }
  return text;
}

function membersOf(value: object): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return Object.entries(value).flatMap(([key, member]) =>
    typeof member === 'string' && namesOnly.has(key) ? [] : [member],
  );
}

function longest(one: string, other: string): string {
  return other.length > one.length ? other : one;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
