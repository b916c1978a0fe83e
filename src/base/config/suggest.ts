/**
 * The known name that was most likely meant by a mistyped one; undefined when none is close.
 * Case and dashes do not count: `Public-URL` means `public_url`.
 */
export function suggest(name: string, known: readonly string[]): string | undefined {
  const wanted = name.slice(0, 64).toLowerCase().replaceAll('-', '_');
  const limit = Math.max(1, Math.floor(wanted.length / 4));
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    // units are last in names, so a missing unit is the most likely mistake
    const distance = candidate.startsWith(`${wanted}_`) ? 1 : editDistance(wanted, candidate);
    if (distance <= limit && distance < (best?.distance ?? Infinity)) best = { name: candidate, distance };
  }
  return best?.name;
}

/** Levenshtein's distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of a.split('').entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      const replaced = (row[j] ?? 0) + (letter === b[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
