import type { FastifyRequest } from 'fastify';

/** The bearer token a request came with; undefined where it came without. */
export function bearerToken(request: FastifyRequest): string | undefined {
  return /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
}

/** The id in a path. What cannot be one belongs to nothing: 0 is never given. */
export function idOf(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0;
}
