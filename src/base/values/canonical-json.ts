/** A value that has exactly one canonical text: no floats, no undefined. */
export type CanonicalValue =
  | string
  | number
  | boolean
  | null
  | readonly CanonicalValue[]
  | { readonly [key: string]: CanonicalValue | undefined };

/**
 * RFC 8785 text of a value: keys in UTF-16 order, no white space. Keys whose value is undefined are left out.
 * Throws on a number that is not a safe integer (money and ids never pass through a float) and on lone surrogates.
 */
export function canonicalJson(value: CanonicalValue): string {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new TypeError(`not a safe integer: ${value}`);
    return String(value);
  }
  if (typeof value === 'string' && !value.isWellFormed())
    throw new TypeError('a string with a lone surrogate');
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (isList(value)) return `[${value.map(canonicalJson).join(',')}]`;
  let text = '';
  for (const key of Object.keys(value).toSorted()) {
    const member = value[key];
    if (member === undefined) continue;
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(member)}`;
  }
  return `{${text}}`;
}

/** Whether the members of every object in a value that was read from JSON are in the order of their canonical text. */
export function hasSortedKeys(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return true;
  let before: string | undefined;
  // of a list, in order; integer-like keys are read in numeric order, and no schema has them
  const isSorted =
    Array.isArray(value) ||
    Object.keys(value).every((key) => {
      const follows = before === undefined || before < key;
      before = key;
      return follows;
    });
  return isSorted && Object.values(value).every(hasSortedKeys);
}

function isList(value: object): value is readonly CanonicalValue[] {
  return Array.isArray(value);
}
