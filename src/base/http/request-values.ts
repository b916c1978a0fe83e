import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';

/** The bearer token of a request; undefined if it has no token. */
export function bearerToken(request: FastifyRequest): string | undefined {
  return /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
}

/** Whether a request's bearer token is this one. In constant time: by hash, so that lengths may differ. */
export function hasBearer(request: FastifyRequest, token: string): boolean {
  return timingSafeEqual(tokenHash(bearerToken(request) ?? ''), tokenHash(token));
}

/** What tokens are compared by. */
export function tokenHash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** How long a request says that its body is, in bytes; 0 if it does not. A length that is not a number is NaN. */
export function declaredBytesOf(headers: IncomingHttpHeaders): number {
  return Number(headers['content-length'] ?? 0);
}

/** The id in a path; 0, which is never assigned, for a malformed one. */
export function idOf(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0;
}

/**
 * The client's address, in front of trusted proxies; a proxy may forward a text other than an address. Empty for a connection that was
 * reset before the gateway accepted it.
 */
export function addressOf({ ip }: { readonly ip: string | undefined }): string {
  return ip ?? '';
}
