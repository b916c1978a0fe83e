import type { z } from 'zod';
import { isObject } from '../../base/values/json-object.ts';
import { canonicalJson, type CanonicalValue } from '../../base/values/canonical-json.ts';

/** Whether a value that was read from JSON matches a schema. Says not why: the schema itself does. */
export type Check = (value: unknown) => boolean;

/**
 * A check of the same values as `schema`, in less than half its time: it copies nothing and collects no issues. Only for what this
 * program wrote itself.
 * @throws Error for a schema of a kind that it does not know: a check must never be weaker than its schema
 */
export function compileCheck(schema: z.core.$ZodType): Check {
  const def = definitionOf(schema as z.core.$ZodTypes);
  switch (def.type) {
    case 'object':
      return all(objectCheck(def), def.checks);
    case 'array':
      return all(arrayCheck(compileCheck(def.element)), def.checks);
    case 'record':
      return all(recordCheck(compileCheck(def.keyType), compileCheck(def.valueType)), def.checks);
    case 'string':
      return all((value) => typeof value === 'string', [...ownCheck(schema), ...(def.checks ?? [])]);
    case 'number':
      if (ownCheck(schema).length === 0)
        throw new Error('a number that may be a fraction has no compiled check');
      return all((value) => typeof value === 'number', [...ownCheck(schema), ...(def.checks ?? [])]);
    case 'boolean':
      return all((value) => typeof value === 'boolean', def.checks);
    case 'enum':
      return all(oneOf(Object.values(def.entries)), def.checks);
    case 'literal':
      return all(oneOf(def.values), def.checks);
    case 'union': {
      const options = def.options.map(compileCheck);
      return all((value) => options.some((check) => check(value)), def.checks);
    }
    case 'optional': {
      const inner = compileCheck(def.innerType);
      return all((value) => value === undefined || inner(value), def.checks);
    }
    case 'unknown':
      return all(() => true, def.checks);
    default:
      throw new Error(`a schema of the kind ${def.type} has no compiled check`);
  }
}

type ZodCheck = z.core.$ZodCheck;

/** Where zod documents the definition of a schema or a check, for libraries built on it. */
function definitionOf<Part extends { readonly _zod: { readonly def: unknown } }>(
  part: Part,
): Part['_zod']['def'] {
  const { _zod: internals } = part;
  return internals.def;
}

/** The check that a format such as `z.uuid()` or `z.int()` is itself. */
function ownCheck(schema: z.core.$ZodType): readonly ZodCheck[] {
  return 'check' in definitionOf(schema) ? [schema as unknown as ZodCheck] : [];
}

function all(base: Check, checks: readonly ZodCheck[] = []): Check {
  if (checks.length === 0) return base;
  const [first, ...others] = checks.map(compileRule);
  if (others.length === 0 && first) return (value) => base(value) && first(value);
  return (value) => base(value) && first?.(value) !== false && others.every((rule) => rule(value));
}

/** The rules are called with values of their schema's own type only. */
function compileRule(check: ZodCheck): Check {
  const def = definitionOf(check as unknown as z.core.$ZodChecks);
  switch (def.check) {
    case 'string_format': {
      const { pattern } = def;
      if (!pattern || pattern.global || pattern.sticky)
        throw new Error(`the text format ${def.format} has no compiled check`);
      return (value) => pattern.test(value as string);
    }
    case 'number_format':
      if (def.format !== 'safeint') throw new Error(`the number format ${def.format} has no compiled check`);
      return Number.isSafeInteger;
    case 'greater_than': {
      const limit = Number(def.value);
      return def.inclusive ? (value) => (value as number) >= limit : (value) => (value as number) > limit;
    }
    case 'less_than': {
      const limit = Number(def.value);
      return def.inclusive ? (value) => (value as number) <= limit : (value) => (value as number) < limit;
    }
    case 'length_equals': {
      const { length } = def;
      return (value) => (value as string | unknown[]).length === length;
    }
    case 'min_length': {
      const { minimum } = def;
      return (value) => (value as string | unknown[]).length >= minimum;
    }
    case 'max_length': {
      const { maximum } = def;
      return (value) => (value as string | unknown[]).length <= maximum;
    }
    default:
      throw new Error(`the rule ${def.check} has no compiled check`);
  }
}

function objectCheck({ shape, catchall }: z.core.$ZodObjectDef): Check {
  if (catchall && definitionOf(catchall as z.core.$ZodTypes).type !== 'never')
    throw new Error('an object with a schema for further keys has no compiled check');
  const keys = Object.keys(shape);
  const checks = Object.values(shape).map((schema) => compileCheck(schema));
  const known = new Set(keys);
  const isStrict = catchall !== undefined;
  return (value) => {
    if (!isObject(value)) return false;
    // by index: pairs in a list would be taken apart for each member of each event
    for (let i = 0; i < keys.length; i++) if (!checks[i]?.(value[keys[i] ?? ''])) return false;
    if (isStrict) for (const key in value) if (!known.has(key)) return false;
    return true;
  };
}

function arrayCheck(element: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return false;
    // not every(), which passes over a hole
    for (const item of value) if (!element(item)) return false;
    return true;
  };
}

function recordCheck(isKey: Check, isValue: Check): Check {
  return (value) =>
    isObject(value) && Object.entries(value).every(([key, item]) => isKey(key) && isValue(item));
}

function oneOf(values: readonly unknown[]): Check {
  const allowed = new Set(values);
  return (value) => allowed.has(value);
}

export type Write = (value: CanonicalValue) => string;

/**
 * Writes the canonical JSON of values that match a schema, in half the time of {@link canonicalJson}: the order of an object's members
 * is known from its schema. For a value that does not match, the text is wrong.
 */
export function compileText(schema: z.core.$ZodType): Write {
  const def = definitionOf(schema as z.core.$ZodTypes);
  switch (def.type) {
    case 'optional':
      return compileText(def.innerType);
    case 'array':
      return listText(compileText(def.element));
    case 'object':
      return hasAll(def) ? objectText(def) : canonicalJson;
    default:
      return canonicalJson;
  }
}

/** Only of a strict object all members are known. */
function hasAll({ catchall }: z.core.$ZodObjectDef): boolean {
  return catchall !== undefined && definitionOf(catchall as z.core.$ZodTypes).type === 'never';
}

function objectText({ shape }: z.core.$ZodObjectDef): Write {
  const keys = Object.keys(shape).toSorted();
  const names = keys.map((key) => `${JSON.stringify(key)}:`);
  const writers = keys.map((key) => compileText(shape[key] as z.core.$ZodType));
  return (value) => {
    const object = value as Readonly<Record<string, CanonicalValue | undefined>>;
    let text = '';
    for (let i = 0; i < keys.length; i++) {
      const member = object[keys[i] ?? ''];
      if (member === undefined) continue;
      text += `${text === '' ? '' : ','}${names[i]}${writers[i]?.(member)}`;
    }
    return `{${text}}`;
  };
}

function listText(element: Write): Write {
  return (value) => `[${(value as readonly CanonicalValue[]).map(element).join(',')}]`;
}
