/** Why bytes are not read as JSON. `malformed`: they are not JSON. */
export type JsonProblem = 'malformed' | 'too_deep' | 'too_many_values';

export type JsonReading =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly problem: JsonProblem };

export interface JsonBounds {
  readonly maxDepth: number;
  /** Most `,`, `:`, `[` and `{` outside of strings: they bound the work on a value and its size in memory. */
  readonly maxMarks: number;
}

/** Some milliseconds of work, for whatever others send. */
export const jsonBounds: JsonBounds = { maxDepth: 128, maxMarks: 60_000 };

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const [openBracket, openBrace, closeBracket, closeBrace] = [0x5b, 0x7b, 0x5d, 0x7d];
const [minus, zero, nine] = [0x2d, 0x30, 0x39];

/** What a scan tells of a number: where its first byte is. Returns where its last one is, and for how many marks it counts. */
type OnNumber = (start: number) => { readonly end: number; readonly marks: number };

/**
 * The bound that the bytes exceed; undefined if they may be parsed. In one pass over them, without parsing: the time is linear, about
 * 3 ms a megabyte.
 */
export function jsonProblem(
  bytes: Uint8Array,
  { maxDepth, maxMarks }: JsonBounds = jsonBounds,
  onNumber?: OnNumber,
): Exclude<JsonProblem, 'malformed'> | undefined {
  let [depth, marks] = [0, 0];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) at = endOfString(bytes, at);
    else if (onNumber && (byte === minus || (byte >= zero && byte <= nine))) {
      const number = onNumber(at);
      at = number.end;
      marks += number.marks;
    } else if (byte === comma || byte === colon) marks += 1;
    else if (byte === openBrace || byte === openBracket) {
      marks += 1;
      depth += 1;
    } else if (byte === closeBrace || byte === closeBracket) depth -= 1;
    if (depth > maxDepth) return 'too_deep';
    if (marks > maxMarks) return 'too_many_values';
  }
  return undefined;
}

/** Parses JSON that others have sent, within bounds on its depth and its values: a text beyond them is refused unparsed. */
export function readJson(sent: Uint8Array | string, bounds: JsonBounds = jsonBounds): JsonReading {
  const bytes = typeof sent === 'string' ? Buffer.from(sent) : sent;
  const problem = jsonProblem(bytes, bounds);
  if (problem !== undefined) return { kind: 'refused', problem };
  try {
    const text =
      typeof sent === 'string' ? sent : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
    return { kind: 'json', value: JSON.parse(text) };
  } catch {
    return { kind: 'refused', problem: 'malformed' };
  }
}

/** The same; undefined for whatever cannot be read. */
export function jsonValue(sent: Uint8Array | string, bounds?: JsonBounds): unknown {
  const reading = readJson(sent, bounds);
  return reading.kind === 'json' ? reading.value : undefined;
}

/** The index of the closing quote, or of the last byte. */
function endOfString(bytes: Uint8Array, opening: number): number {
  let at = opening + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}
