import { createHash } from 'node:crypto';
import { jsonBounds, jsonProblem, type JsonProblem } from './bounded-json.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** Methods of JSON that TypeScript's library does not declare yet. */
interface SourceJson {
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
}

const sourceJson = JSON as unknown as SourceJson;
/** How many marks a number counts for that a double cannot hold: as much work. */
const marksOfInexactNumber = 20;
const [minus, plus, dot, zero, nine] = [0x2d, 0x2b, 0x2e, 0x30, 0x39];
const [smallE, capitalE] = [0x65, 0x45];
/** Digits that a double always holds. */
const exactDigits = 15;

/**
 * Parses a JSON object so that `JSON.stringify` writes every number unchanged: one that a double cannot hold becomes a raw
 * JSON object with its text. Of a repeated key the last value counts. Input beyond the limits is refused before it is parsed.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | JsonProblem {
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

/** A number that a double cannot hold, at bytes `start` to `end` (exclusive). */
interface InexactNumber {
  readonly start: number;
  readonly end: number;
  readonly source: string;
}

/** Found in the one pass that checks the bounds. */
function inexactNumbers(bytes: Uint8Array): readonly InexactNumber[] | JsonProblem {
  const numbers: InexactNumber[] = [];
  const problem = jsonProblem(bytes, jsonBounds, (start) => {
    let end = start;
    while (isOfNumber(bytes[end + 1])) end += 1;
    const number = inexactNumber(bytes, start, end + 1);
    if (number) numbers.push(number);
    return { end, marks: number ? marksOfInexactNumber : 0 };
  });
  return problem ?? numbers;
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
  if (text.length <= exactDigits && !text.some(isExponent)) return undefined;
  const source = Buffer.from(text).toString('latin1');
  return isInexact(Number(source)) ? { start, end, source } : undefined;
}

function isInexact(value: number): boolean {
  return !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value));
}

function parse(bytes: Uint8Array): unknown {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
}

/** Parses with a placeholder text for each such number, then restores them: a reviver takes seconds on large bodies. */
function parseExactly(bytes: Uint8Array, numbers: readonly InexactNumber[]): unknown {
  // no text contains its own hash, so the placeholders are unique
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
      if (key.startsWith(prefix)) throw new SyntaxError('a key cannot be a number');
      members[key] = restored(member);
    }
  };
  return restored(parse(Buffer.concat([...pieces, bytes.subarray(at)])));
}
