import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const exposed = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
  'Location',
  'Retry-After',
  'ETag',
  'Idempotent-Replayed',
].join(', ');

const allowed = [
  'Authorization',
  'Content-Type',
  'If-None-Match',
  'PAYMENT-SIGNATURE',
  'X-PAYMENT',
  'X-NET-CALLER',
  'X-NET-CALLER-SIG',
  'X-NET-CALLER-NONCE',
  'X-NET-CALLER-EXPIRY',
  // @x402/fetch sends this answer header with its paid request
  'Access-Control-Expose-Headers',
].join(', ');

/**
 * Lets pages of any origin call `/x402`, and nothing else. No cookie is ever looked at there, so nothing can be done in
 * a visitor's name that the page could not do by itself.
 */
export function allowOrigins(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    allowOrigin(request, reply);
    if (isPublic(request) && isPreflight(request)) return sendPreflight(reply);
  });
}

/** The same for one answer that no hook sees. */
export function allowOrigin(request: FastifyRequest, reply: FastifyReply): void {
  if (!isPublic(request)) return;
  reply.header('access-control-allow-origin', '*').header('access-control-expose-headers', exposed);
}

function isPublic({ url }: FastifyRequest): boolean {
  return url.startsWith('/x402/');
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

/** The same for every path: whether it exists is for the request itself to find out. */
function sendPreflight(reply: FastifyReply): FastifyReply {
  return reply
    .code(204)
    .header('access-control-allow-methods', 'GET, POST')
    .header('access-control-allow-headers', allowed)
    .header('access-control-max-age', '86400')
    .send();
}
