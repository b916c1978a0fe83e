import type { FastifyRequest } from 'fastify';

/**
 * Whether a request may act by the cookie it carries. Browsers send the origin of every request that writes; a client that
 * sends none is not a browser.
 */
export function isOfOwnPages({ method, headers }: FastifyRequest, publicUrl: string): boolean {
  if (method === 'GET' || method === 'HEAD') return true;
  const { origin, 'sec-fetch-site': site } = headers;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || origin === new URL(publicUrl).origin;
}
