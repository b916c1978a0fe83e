import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** What a page may send to one of the two APIs, and what it may read of the answers. */
interface CorsPolicy {
  readonly exposed: string;
  readonly allowed: string;
}

const x402: CorsPolicy = {
  exposed: [
    'PAYMENT-REQUIRED',
    'PAYMENT-RESPONSE',
    'X-PAYMENT-RESPONSE',
    'Location',
    'Retry-After',
    'ETag',
    'Idempotent-Replayed',
  ].join(', '),
  allowed: [
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
  ].join(', '),
};

const routing: CorsPolicy = {
  exposed: [
    'X-Request-Id',
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
    'RateLimit-Policy',
    'RateLimit',
    'Retry-After',
    'X-Should-Retry',
    'X-Payment-Required',
    'X-Payment-Token',
    'X-Payment-Recipient',
    'X-Payment-Network',
  ].join(', '),
  // OpenAI's client has a dozen headers of its own; the star stands for all but Authorization
  allowed: ['Authorization', 'Content-Type', 'X-Payment-Signature', '*'].join(', '),
};

export interface Cors {
  readonly watch: (app: FastifyInstance) => void;
  /** For one answer that no hook sees. */
  readonly allowOrigin: (request: FastifyRequest, reply: FastifyReply) => void;
}

/**
 * Lets pages of any origin call `/x402`, and `/v1` where it is served, and nothing else. No cookie comes along with such a
 * call, so nothing can be done in a visitor's name that the page could not do by itself.
 */
export function createCors(isRoutingPath: (url: string) => boolean): Cors {
  const doorOf = ({ url }: FastifyRequest): CorsPolicy | undefined => {
    if (url.startsWith('/x402/')) return x402;
    return isRoutingPath(url) ? routing : undefined;
  };
  const allowOrigin = (request: FastifyRequest, reply: FastifyReply): void => {
    const door = doorOf(request);
    if (!door) return;
    reply.header('access-control-allow-origin', '*').header('access-control-expose-headers', door.exposed);
  };
  return {
    allowOrigin,
    watch(app) {
      app.addHook('onRequest', async (request, reply) => {
        allowOrigin(request, reply);
        const door = doorOf(request);
        if (door && isPreflight(request)) return sendPreflight(reply, door);
      });
    },
  };
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

/** The same for every path: whether it exists is for the request itself to find out. */
function sendPreflight(reply: FastifyReply, { allowed }: CorsPolicy): FastifyReply {
  return reply
    .code(204)
    .header('access-control-allow-methods', 'GET, POST')
    .header('access-control-allow-headers', allowed)
    .header('access-control-max-age', '86400')
    .send();
}
