import type { FastifyRequest } from 'fastify';

/**
 * Whether what a request wants may be done in the name of the cookie it carries. Browsers say where a request that writes
 * comes from; who says nothing is no browser, and has the cookie by its own means.
 */
export function isOfOwnPages({ method, headers }: FastifyRequest, publicUrl: string): boolean {
  if (method === 'GET' || method === 'HEAD') return true;
  const { origin, 'sec-fetch-site': site } = headers;
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || origin === new URL(publicUrl).origin;
}
