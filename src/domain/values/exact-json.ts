import { createHash } from 'node:crypto';

export type JsonObject = Readonly<Record<string, unknown>>;

/** Why bytes are not taken. `malformed`: no JSON object in UTF-8. */
export type JsonFault = 'malformed' | 'too_deep' | 'too_many_values';

/** What the language has and TypeScript's library does not describe yet. */
interface SourceJson {
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
}

const sourceJson = JSON as unknown as SourceJson;
export const maxJsonDepth = 128;
/** Of `,`, `:`, `[` and `{` outside of strings: all work on a value, and its size in memory, is bounded by them. */
export const maxJsonMarks = 200_000;
/** A number that a double cannot keep is as much work as so many of them. */
const marksOfInexactNumber = 20;
const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openBracket, openBrace, closeBracket, closeBrace] = [0x5b, 0x7b, 0x5d, 0x7d];
const [minus, plus, dot, zero, nine] = [0x2d, 0x2b, 0x2e, 0x30, 0x39];
const [smallE, capitalE] = [0x65, 0x45];
/** So many digits a double keeps. */
const keptDigits = 15;

/**
 * Parses a JSON object so that `JSON.stringify` writes it again with every number as it was: one that a double cannot keep
 * becomes an object that stands for its text. Of a repeated key the last value counts. What is too deep or too much is
 * refused before anything is made of it.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | JsonFault {
  const numbers = inexactNumbers(bytes);
  if (typeof numbers === 'string') return numbers;
  try {
    const value = numbers.length === 0 ? parse(bytes) : parseExactly(bytes, numbers);
    return isJsonObject(value) ? value : 'malformed';
  } catch {
    return 'malformed';
  }
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !sourceJson.isRawJSON(value);
}

/** Where a number stands that a double cannot keep. */
interface InexactNumber {
  readonly start: number;
  readonly end: number;
  readonly source: string;
}

/** Reads bytes once, without parsing them. */
function inexactNumbers(bytes: Uint8Array): readonly InexactNumber[] | JsonFault {
  const numbers: InexactNumber[] = [];
  let [depth, marks] = [0, 0];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) at = endOfString(bytes, at);
    else if (byte === minus || isDigit(byte)) {
      const start = at;
      while (isOfNumber(bytes[at + 1])) at += 1;
      const number = inexactNumber(bytes, start, at + 1);
      if (number) {
        numbers.push(number);
        marks += marksOfInexactNumber;
      }
    } else if (byte === comma || byte === colon) marks += 1;
    else if (byte === openBrace || byte === openBracket) {
      marks += 1;
      depth += 1;
    } else if (byte === closeBrace || byte === closeBracket) depth -= 1;
    if (depth > maxJsonDepth) return 'too_deep';
    if (marks > maxJsonMarks) return 'too_many_values';
  }
  return numbers;
}

/** Where the closing quote stands, or the last byte. */
function endOfString(bytes: Uint8Array, opening: number): number {
  let at = opening + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine;
}

function isExponent(byte: number | undefined): boolean {
  return byte === smallE || byte === capitalE;
}

function isOfNumber(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  return isDigit(byte) || byte === dot || byte === minus || byte === plus || isExponent(byte);
}

function inexactNumber(bytes: Uint8Array, start: number, end: number): InexactNumber | undefined {
  const text = bytes.subarray(start, end);
  if (text.length <= keptDigits && !text.some(isExponent)) return undefined;
  const source = Buffer.from(text).toString('latin1');
  return isInexact(Number(source)) ? { start, end, source } : undefined;
}

function isInexact(value: number): boolean {
  return !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value));
}

function parse(bytes: Uint8Array): unknown {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
}

/** Parses with a text in place of each such number, and puts them back: a reviver takes seconds over large bodies. */
function parseExactly(bytes: Uint8Array, numbers: readonly InexactNumber[]): unknown {
  // no text can hold its own hash
  const prefix = createHash('sha256').update(bytes).digest('hex').slice(0, 32);
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const [index, { start, end }] of numbers.entries()) {
    pieces.push(bytes.subarray(at, start), Buffer.from(`"${prefix}${index}"`));
    at = end;
  }
  const restored = (value: unknown): unknown => {
    if (typeof value === 'string' && value.startsWith(prefix))
      return sourceJson.rawJSON(numbers[Number(value.slice(prefix.length))]?.source ?? '');
    if (Array.isArray(value)) for (const [index, item] of value.entries()) value[index] = restored(item);
    else if (typeof value === 'object' && value !== null) restoreMembers(value as Record<string, unknown>);
    return value;
  };
  const restoreMembers = (members: Record<string, unknown>): void => {
    for (const [key, member] of Object.entries(members)) {
      if (key.startsWith(prefix)) throw new SyntaxError('a number is no key');
      members[key] = restored(member);
    }
  };
  return restored(parse(Buffer.concat([...pieces, bytes.subarray(at)])));
}
