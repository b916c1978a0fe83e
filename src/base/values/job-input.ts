import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { jsonBounds, readJson } from './bounded-json.ts';
import { isObject } from './json-object.ts';

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

/** A schema's check of a body, which is JSON within bounds. */
export interface CompiledSchema {
  readonly check: InputCheck;
  /** Its time is not bounded by the size of its input: it has a pattern, or refers to parts of itself. */
  readonly mayTakeLong: boolean;
}

const maxFaults = 10;
/** In a longer body only the first fault is looked for: all those of a megabyte take a second. */
const maxBytesForAll = 16_384;

/**
 * A check of JSON bodies against a JSON Schema, draft 2020-12. The runner parses the same bytes itself, so whatever parsers read
 * in different ways is a fault too: a byte order mark, and a key that an object has twice.
 * @throws Error if the schema does not compile; an unknown keyword is an error, and no reference is fetched
 */
export function compileSchema(schema: Readonly<Record<string, unknown>>): CompiledSchema {
  // throws; only a meta-schema that is asynchronous answers with a promise
  void metaSchema.validateSchema(schema, true);
  const [first, all] = [false, true].map((allErrors) => compile(schema, allErrors));
  const check: InputCheck = (body) => {
    const text = decode(body);
    const reading = text === undefined ? undefined : readJson(text);
    if (text === undefined || !reading || (reading.kind === 'refused' && reading.problem === 'malformed'))
      return [ofBody('is not JSON in UTF-8 without a byte order mark')];
    if (reading.kind === 'refused') return [ofBody(tooMuch)];
    const { value } = reading;
    if (countMembers(text) !== countKeys(value)) return [ofBody('has an object with the same key twice')];
    const validate = body.length > maxBytesForAll ? first : all;
    return validate?.(value) ? [] : (validate?.errors ?? []).slice(0, maxFaults).map(faultOf);
  };
  return { check, mayTakeLong: longKeywords.test(JSON.stringify(schema)) };
}

const tooMuch = `has more than ${jsonBounds.maxMarks} values, or more than ${jsonBounds.maxDepth} levels`;
const longKeywords = /"(?:pattern|patternProperties|\$ref|\$dynamicRef)":/;

/** The error of a check that was stopped before its end. */
export const checkedTooLong = (): InputFault => ofBody("takes too long to check against the job's schema");

// formats are not checked: validators differ in which of them they check, and how strictly
const options = { validateFormats: false, strictTypes: false, strictRequired: false };
/** Compiles the meta-schema at its first use, in 40 ms or more, and keeps it. It keeps no schema that it validates. */
const metaSchema = new Ajv2020(options);

/** By a compiler of its own: a shared one would confuse schemas of two jobs that have one `$id`. */
function compile(schema: Readonly<Record<string, unknown>>, allErrors: boolean): ValidateFunction {
  const ajv = new Ajv2020({ ...options, allErrors, validateSchema: false });
  // the library's own word: such a check answers with a promise, and every body would pass
  ajv.removeKeyword('$async');
  // the library compares each item with each other one
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isOn: boolean, items: readonly unknown[]) => !isOn || allDiffer(items),
    error: { message: 'must NOT have duplicate items' },
  });
  return ajv.compile(schema);
}

/** Equal values of JSON have one text, once the keys of their objects are sorted. */
function allDiffer(items: readonly unknown[]): boolean {
  return new Set(items.map(sortedText)).size === items.length;
}

function sortedText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedText).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${sortedText(value[key])}`);
  return `{${members.join()}}`;
}

function decode(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
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
