import type { z } from 'zod';
import { canonicalJson, type CanonicalValue } from '../../base/values/canonical-json.ts';
import { definitionOf } from './compiled-check.ts';

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
      return isStrict(def) ? objectText(def) : canonicalJson;
    default:
      return canonicalJson;
  }
}

/** Only of a strict object all members are known. */
function isStrict({ catchall }: z.core.$ZodObjectDef): boolean {
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
