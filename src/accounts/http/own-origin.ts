import type { FastifyRequest } from 'fastify';

/**
 * Whether a request may act by the cookie it carries. Browsers send the origin of every request that writes; a client that
 * sends none is not a browser.
 * @param trustedOrigins whose pages the operator trusts as much
 */
export function isOfOwnPages(
  { method, headers }: FastifyRequest,
  publicUrl: string,
  trustedOrigins: readonly string[] = [],
): boolean {
  if (method === 'GET' || method === 'HEAD') return true;
  const { origin, 'sec-fetch-site': site } = headers;
  if (origin !== undefined && trustedOrigins.includes(origin)) return true;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || origin === new URL(publicUrl).origin;
}
