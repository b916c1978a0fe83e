const maxChars = 4_000;

/**
 * A path of this gateway's own, with its query, as it may stand in a redirect; `/` for everything else. Dots are resolved first:
 * `/..//other.example` would lead elsewhere.
 */
export function ownPath(text: string | null | undefined, publicUrl: string): string {
  const { origin } = new URL(publicUrl);
  if (!text?.startsWith('/') || text.length > maxChars || /[\\\p{C}]/u.test(text)) return '/';
  if (!URL.canParse(text, origin)) return '/';
  const url = new URL(text, origin);
  if (url.origin !== origin || url.pathname.startsWith('//')) return '/';
  return url.pathname + url.search;
}

/** A path with a query of the values that are not empty. */
export function pathWith(path: string, values: Readonly<Record<string, string | undefined>>): string {
  const named = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  if (named.length === 0) return path;
  const query = new URLSearchParams(named as [string, string][]).toString();
  return `${path}${path.includes('?') ? '&' : '?'}${query}`;
}
