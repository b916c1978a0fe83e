import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';

/** The faults of a request's body, at most ten. Empty for a valid body. */
export type InputCheck = (body: Uint8Array) => readonly InputFault[];

export interface InputFault {
  /** A JSON pointer; empty for the body itself. */
  readonly at: string;
  /** What the value there breaks, such as `must be string`. */
  readonly rule: string;
  /** The property that an object lacks. */
  readonly missing?: string;
  /** Both in one line. */
  readonly text: string;
}

const maxFaults = 10;

/**
 * A check of JSON bodies against a JSON Schema, draft 2020-12. The runner parses the same bytes itself, so whatever parsers read
 * in different ways is a fault too: a byte order mark, and a key that an object has twice.
 * @throws Error where the schema does not compile; an unknown keyword is an error, and no reference is fetched
 */
export function compileSchema(schema: Readonly<Record<string, unknown>>): InputCheck {
  // formats are not checked: validators differ in which of them they check, and how strictly
  const ajv = new Ajv2020({
    allErrors: true,
    validateFormats: false,
    strictTypes: false,
    strictRequired: false,
  });
  const validate = ajv.compile(schema);
  return (body) => {
    const text = decode(body);
    const value = text === undefined ? undefined : parseJson(text);
    if (text === undefined || value === undefined)
      return [ofBody('is not JSON in UTF-8 without a byte order mark')];
    if (countMembers(text) !== countKeys(value)) return [ofBody('has an object with the same key twice')];
    return validate(value) ? [] : (validate.errors ?? []).slice(0, maxFaults).map(faultOf);
  };
}

function decode(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The members of all objects in a valid JSON text, those with a repeated key too: each has one colon outside of strings. */
function countMembers(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === ':') count += 1;
    if (text[at] !== '"') continue;
    for (at += 1; text[at] !== '"'; at++) if (text[at] === '\\') at += 1;
  }
  return count;
}

/** The keys of all objects in a parsed value. */
function countKeys(value: unknown): number {
  let count = 0;
  const left = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next !== 'object' || next === null) continue;
    const values: unknown[] = Object.values(next);
    if (!Array.isArray(next)) count += values.length;
    for (const each of values) left.push(each);
  }
  return count;
}

/** Names the location and the rule; never quotes the client's own text. */
function faultOf({ instancePath: at, keyword, message, params }: ErrorObject): InputFault {
  const rule = message ?? `breaks ${keyword}`;
  const { missingProperty } = params;
  const missing = typeof missingProperty === 'string' ? { missing: missingProperty } : {};
  return { at, rule, ...missing, text: `${at === '' ? 'the body' : at.slice(0, 200)} ${rule}` };
}

function ofBody(rule: string): InputFault {
  return { at: '', rule, text: `the body ${rule}` };
}

/** The media type of a content type header: lower case, without parameters. */
export function mediaTypeOf(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Refused with `unsupported_media_type`: the runner is given the bytes without the header. */
export const encodedBody = 'Content-Encoding is not supported: send the body itself';

/** Whether the bytes of a body are the body itself, by its header. */
export function isPlain(contentEncoding: string | undefined): boolean {
  return contentEncoding === undefined || contentEncoding.trim().toLowerCase() === 'identity';
}

/** Whether a runner can be sent this content type unchanged. */
export function isCarriable(contentType: string | undefined): boolean {
  return contentType === undefined || /^[!-~][ -~]{0,199}$/.test(contentType);
}
