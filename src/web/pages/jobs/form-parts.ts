import { isObject } from '../../../base/values/json-object.ts';

/** A value that one control of a form can hold. */
export type Simple = string | number | boolean | null;

/** What a form asks for one value of a schema. */
export type Part =
  | { readonly kind: 'text'; readonly isLong: boolean; readonly maxLength: number | undefined }
  | { readonly kind: 'number'; readonly isWhole: boolean }
  | { readonly kind: 'choice'; readonly values: readonly Simple[] }
  /** Simple values, one a line. */
  | { readonly kind: 'list'; readonly of: 'text' | 'number' | 'whole' }
  /** Some of several values. */
  | { readonly kind: 'choices'; readonly values: readonly Simple[] }
  | { readonly kind: 'group'; readonly members: readonly Member[] }
  /** What no control is made for: its JSON. */
  | { readonly kind: 'json' };

export interface Member {
  readonly key: string;
  /** The JSON pointer of its value in the body. */
  readonly pointer: string;
  /** Of its control. */
  readonly name: string;
  readonly label: string;
  readonly hints: readonly string[];
  readonly isRequired: boolean;
  readonly part: Part;
  /** What the schema proposes. */
  readonly usual: unknown;
}

/** The limits of a form; deeper or longer values are written as JSON. */
const maxDepth = 4;
const maxMembers = 60;
const maxValues = 100;
const maxValueChars = 200;
const maxTextChars = 300;

/** Where other schemas decide about the members of an object, its properties alone do not describe it. */
const deciding = [
  ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'patternProperties', 'propertyNames'],
  ['dependentSchemas', 'dependentRequired', 'unevaluatedProperties', 'prefixItems', 'contains'],
].flat();

type Schema = Readonly<Record<string, unknown>>;

/** The members of a form for an object of this schema; undefined if a person writes its JSON. */
export function formMembers(schema: Schema): readonly Member[] | undefined {
  const left = { members: maxMembers };
  const part = groupOf(schema, { pointer: '', depth: 1, left });
  return part?.members;
}

interface Place {
  readonly pointer: string;
  readonly depth: number;
  /** How many more the whole form may have. */
  readonly left: { members: number };
}

function groupOf(
  schema: Schema,
  { pointer, depth, left }: Place,
): Extract<Part, { kind: 'group' }> | undefined {
  const { type, properties, required, additionalProperties } = schema;
  if (type !== 'object' || !isObject(properties) || depth > maxDepth) return undefined;
  if (isObject(additionalProperties) || deciding.some((keyword) => keyword in schema)) return undefined;
  const keys = Object.keys(properties);
  left.members -= keys.length;
  if (left.members < 0 || keys.length === 0) return undefined;
  const needed = new Set<unknown>(Array.isArray(required) ? required : []);
  if ([...needed].some((key) => typeof key !== 'string' || !Object.hasOwn(properties, key))) return undefined;
  const members = keys.map((key) => {
    const place = { pointer: `${pointer}/${escaped(key)}`, depth: depth + 1, left };
    return memberOf(key, properties[key], needed.has(key), place);
  });
  return left.members < 0 ? undefined : { kind: 'group', members };
}

function memberOf(key: string, value: unknown, isRequired: boolean, place: Place): Member {
  const schema = isObject(value) ? value : {};
  const part = partOf(schema, place);
  const examples: unknown[] = Array.isArray(schema['examples']) ? schema['examples'] : [];
  return {
    key,
    pointer: place.pointer,
    name: nameOf(place.pointer),
    label: textOf(schema['title']) ?? key.slice(0, maxTextChars),
    hints: hintsOf(schema, part, examples[0]),
    isRequired,
    part,
    usual: schema['default'],
  };
}

/** The name of a control; it has no spaces, so that it is an id as well. */
export function nameOf(pointer: string): string {
  return `in${pointer
    .split('/')
    .map((step) => encodeURIComponent(step.toWellFormed()))
    .join('/')}`;
}

function partOf(schema: Schema, place: Place): Part {
  const { type, enum: allowed, const: only } = schema;
  const choice = simpleValues('const' in schema ? [only] : allowed);
  if (choice) return { kind: 'choice', values: choice };
  if (allowed !== undefined || 'const' in schema || deciding.some((keyword) => keyword in schema))
    return { kind: 'json' };
  switch (type) {
    case 'string':
      return textPart(schema);
    case 'number':
    case 'integer':
      return { kind: 'number', isWhole: type === 'integer' };
    case 'boolean':
      return { kind: 'choice', values: [true, false] };
    case 'array':
      return listPart(schema);
    case 'object':
      return groupOf(schema, place) ?? { kind: 'json' };
    default:
      return { kind: 'json' };
  }
}

function textPart({ maxLength, contentEncoding, default: usual }: Schema): Part {
  // a person cannot type bytes
  if (contentEncoding !== undefined) return { kind: 'json' };
  const most = isCount(maxLength) ? maxLength : undefined;
  const isLong = (most === undefined || most > 120) && !(typeof usual === 'string' && usual.length < 60);
  return { kind: 'text', isLong, maxLength: most };
}

function listPart({ items, uniqueItems }: Schema): Part {
  if (!isObject(items) || deciding.some((keyword) => keyword in items)) return { kind: 'json' };
  const values = simpleValues(items['enum']);
  if (values && uniqueItems === true && values.length <= 20) return { kind: 'choices', values };
  if ('enum' in items || 'const' in items || 'contentEncoding' in items) return { kind: 'json' };
  switch (items['type']) {
    case 'string':
      return { kind: 'list', of: 'text' };
    case 'number':
      return { kind: 'list', of: 'number' };
    case 'integer':
      return { kind: 'list', of: 'whole' };
    default:
      return { kind: 'json' };
  }
}

function simpleValues(values: unknown): readonly Simple[] | undefined {
  if (!Array.isArray(values) || values.length === 0 || values.length > maxValues) return undefined;
  const all: readonly unknown[] = values;
  return all.every(isSimple) ? all : undefined;
}

function isSimple(value: unknown): value is Simple {
  if (typeof value === 'string') return value.length <= maxValueChars;
  return value === null || typeof value === 'number' || typeof value === 'boolean';
}

function hintsOf(schema: Schema, part: Part, example: unknown): readonly string[] {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems, pattern } = schema;
  const rules = [
    textOf(schema['description']),
    part.kind === 'text' && range(minLength, maxLength, 'characters'),
    part.kind === 'number' && range(minimum, maximum, ''),
    part.kind === 'list' && 'One a line.',
    (part.kind === 'list' || part.kind === 'choices') && range(minItems, maxItems, 'of them'),
    part.kind === 'json' && 'As JSON.',
    part.kind === 'text' && typeof pattern === 'string' && `It matches ${pattern.slice(0, 80)}`,
    isSimple(example) && example !== null && part.kind !== 'choice' && `For example: ${String(example)}`,
  ];
  return rules.filter((rule): rule is string => typeof rule === 'string' && rule !== '');
}

function range(least: unknown, most: unknown, of: string): string {
  const from = typeof least === 'number' && (of === '' || least > 1) ? least : undefined;
  const to = typeof most === 'number' ? most : undefined;
  if (from === undefined) return to === undefined ? '' : `At most ${to} ${of}`.trim() + '.';
  return (to === undefined ? `At least ${from} ${of}` : `${from} to ${to} ${of}`).trim() + '.';
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.slice(0, maxTextChars) : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** A key as a step of a JSON pointer. */
export function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
