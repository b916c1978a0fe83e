/** A quote as lists show it. `source`: which service issued it, if not a 402 answer. */
export function quoteText(digest: string, source: string | null | undefined): string {
  return `quote ${digest}${source ? ` (issued by the ${source} service)` : ''}`;
}
