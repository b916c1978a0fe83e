import type { FastifyRequest } from 'fastify';

/** The bearer token a request came with; undefined where it came without. */
export function bearerToken(request: FastifyRequest): string | undefined {
  return /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
}

/** The call id of a path. An id that cannot be one belongs to no call: 0 is never given. */
export function callIdOf(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0;
}
