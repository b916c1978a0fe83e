import { isDeepStrictEqual } from 'node:util';

const shown = 12;

/** @throws Error that names what differs, with the first entries that only one side has */
export function requireSame(what: string, found: unknown, expected: unknown): void {
  if (isDeepStrictEqual(found, expected)) return;
  if (!Array.isArray(found) || !Array.isArray(expected))
    throw new Error(`${what}: found ${textOf(found)}, expected ${textOf(expected)}`);
  const [only, missing] = [without(found, expected), without(expected, found)];
  throw new Error(
    [`${what}: ${only.length} are there that should not be, ${missing.length} are missing`]
      .concat(only.slice(0, shown).map((one) => `  there:   ${one}`))
      .concat(missing.slice(0, shown).map((one) => `  missing: ${one}`))
      .join('\n'),
  );
}

/** @throws Error if the amounts are not all the same */
export function requireSameAmounts(what: string, amounts: Readonly<Record<string, bigint>>): void {
  if (new Set(Object.values(amounts)).size <= 1) return;
  const list = Object.entries(amounts).map(([name, atoms]) => `  ${name}: ${atoms}`);
  throw new Error([`${what} differs:`, ...list].join('\n'));
}

function without(list: readonly unknown[], others: readonly unknown[]): string[] {
  const left = new Map<string, number>();
  for (const one of others.map(textOf)) left.set(one, (left.get(one) ?? 0) + 1);
  return list.map(textOf).filter((one) => {
    const count = left.get(one) ?? 0;
    left.set(one, count - 1);
    return count <= 0;
  });
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? 'undefined');
}
