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

function isList(value: object): value is readonly CanonicalValue[] {
  return Array.isArray(value);
}
