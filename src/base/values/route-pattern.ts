/**
 * Paths of paid routes, in a part of find-my-way's syntax: segments that are fixed or a parameter (`:name`), and `*` at the end for the
 * rest. Its expressions and parameters within a segment are left out: they match in ways that two readers of one path see differently.
 */
const segment = /^(?:[A-Za-z0-9._~!$&'+,;=@-]+|:[A-Za-z][A-Za-z0-9_]*)$/;

/** What is wrong with a pattern; undefined for a valid one. */
export function patternFault(pattern: string): string | undefined {
  if (!pattern.startsWith('/')) return 'must start with a slash';
  if (pattern === '/') return undefined;
  const segments = pattern.slice(1).split('/');
  const last = segments.at(-1);
  const fixed = last === '*' ? segments.slice(0, -1) : segments;
  if (fixed.some((part) => part === '.' || part === '..')) return 'must not contain dot segments';
  if (!fixed.every((part) => segment.test(part)))
    return 'must be segments such as /weather/:city or /files/*: plain characters, `:name` for a whole segment, `*` as the last one';
  const names = fixed.filter((part) => part.startsWith(':'));
  return new Set(names).size === names.length ? undefined : 'names a parameter twice';
}

/** The pattern without the names of its parameters: two patterns with the same shape match the same paths. */
export function patternShape(pattern: string): string {
  return pattern.replaceAll(/:[A-Za-z][A-Za-z0-9_]*/g, ':').toLowerCase();
}

/**
 * Whether route and upstream see the same path: no empty or dot segment, no parameters of a segment (`;`), no encoded slash, dot or
 * backslash, nothing that a URL parser would change.
 * @param target path and query as the client sent them
 */
export function isPlainTarget(target: string): boolean {
  const end = target.indexOf('?');
  const path = end < 0 ? target : target.slice(0, end);
  if (!path.startsWith('/') || path.includes('//') || /;|%(?:2f|5c|2e|3b|00|25)/i.test(path)) return false;
  if (!/^[\x21-\x7e]*$/.test(target) || target.includes('#') || target.includes('\\')) return false;
  if (/%(?![0-9a-f]{2})/i.test(target)) return false;
  return URL.canParse(target, 'http://x') && new URL(target, 'http://x').pathname === path;
}
