import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** The request headers that a page may send to one of the two APIs, and the answer headers that it may read. */
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
    'Preference-Applied',
  ].join(', '),
  allowed: [
    'Authorization',
    'Content-Type',
    'If-None-Match',
    'Last-Event-ID',
    'Prefer',
    'PAYMENT-SIGNATURE',
    'X-PAYMENT',
    'SIGN-IN-WITH-X',
    'X-NET-CALLER',
    'X-NET-CALLER-SIG',
    'X-NET-CALLER-NONCE',
    'X-NET-CALLER-EXPIRY',
    'X-NET-CALLBACK-URL',
    'X-NET-REDELIVERY-SIG',
    'Accept-Payment',
    'Idempotency-Key',
    'Traceparent',
    'X-Request-Id',
    // @x402/fetch sends this answer header with its paid request
    'Access-Control-Expose-Headers',
    // a policy may order calls by any header
    '*',
  ].join(', '),
};

/** Of the answers of `/v1/chat/completions`. */
export const rateLimitHeaders = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit',
] as const;

const chat: CorsPolicy = {
  exposed: [
    'X-Request-Id',
    ...rateLimitHeaders,
    'Retry-After',
    'X-Should-Retry',
    'X-Payment-Required',
    'X-Payment-Token',
    'X-Payment-Recipient',
    'X-Payment-Network',
    'PAYMENT-REQUIRED',
    'PAYMENT-RESPONSE',
    'Idempotent-Replayed',
    'Link',
  ].join(', '),
  // OpenAI's client sends a dozen further headers; the star covers all but Authorization
  allowed: ['Authorization', 'Content-Type', 'X-Payment-Signature', '*'].join(', '),
};

export interface Cors {
  readonly watch: (app: FastifyInstance) => void;
  /** For an answer that bypasses the hooks. */
  readonly allowOrigin: (request: FastifyRequest, reply: FastifyReply) => void;
}

const discovery = new Set(['/.well-known/x402', '/.well-known/did.json', '/llms.txt']);

/**
 * Allows pages of any origin to call `/x402`, to read the offers and their signer, and, with the feature chat, `/v1`; nothing else. Such a call carries no cookies,
 * so a page cannot act in the name of its visitor. Pages of trusted origins can: below `/v1` and `/api`, with cookies.
 */
export function createCors(
  isChatPath: (url: string) => boolean,
  trustedOrigins: readonly string[],
  isPaidApi = false,
): Cors {
  const isTrusted = ({ headers }: FastifyRequest): boolean =>
    headers.origin !== undefined && trustedOrigins.includes(headers.origin);
  const policyOf = (request: FastifyRequest): CorsPolicy | undefined => {
    const { url } = request;
    if (isPaidApi || url.startsWith('/x402/') || discovery.has(url.split('?', 1)[0] ?? '')) return x402;
    if (isChatPath(url)) return chat;
    return url.startsWith('/api/') && isTrusted(request) ? chat : undefined;
  };
  const allowOrigin = (request: FastifyRequest, reply: FastifyReply): CorsPolicy | undefined => {
    const policy = policyOf(request);
    if (!policy) return undefined;
    allow(reply, policy);
    if (policy !== chat || trustedOrigins.length === 0) return policy;
    // a cache must not give the answer for one origin to another
    reply.header('vary', 'Origin');
    if (!isTrusted(request)) return policy;
    const { origin, 'access-control-request-headers': asked } = request.headers;
    reply.header('access-control-allow-origin', origin).header('access-control-allow-credentials', 'true');
    // with credentials a star is not a wildcard
    return { ...policy, allowed: asked ?? policy.allowed };
  };
  return {
    allowOrigin: (request, reply) => void allowOrigin(request, reply),
    watch(app) {
      app.addHook('onRequest', (request, reply, done) => {
        const policy = allowOrigin(request, reply);
        if (policy && isPreflight(request)) sendPreflight(reply, policy);
        else done();
      });
    },
  };
}

function allow(reply: FastifyReply, { exposed }: CorsPolicy): void {
  reply.header('access-control-allow-origin', '*').header('access-control-expose-headers', exposed);
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

/** The same for every path; the request itself gets the 404 of an unknown one. */
function sendPreflight(reply: FastifyReply, { allowed }: CorsPolicy): FastifyReply {
  return reply
    .code(204)
    .header('access-control-allow-methods', 'GET, POST, PATCH, DELETE')
    .header('access-control-allow-headers', allowed)
    .header('access-control-max-age', '86400')
    .send();
}
