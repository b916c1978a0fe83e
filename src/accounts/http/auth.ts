import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { AuthLoader } from '../use-cases/auth-loader.ts';
import type { Identity } from '../use-cases/context.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { callAuth } from './auth-call.ts';
import { authBase } from './auth-request.ts';

/** better-auth below `/api/auth`. */
export function authRoutes(identity: Identity, door: AuthLoader) {
  return async (app: FastifyInstance): Promise<void> => {
    app.route({
      method: ['GET', 'POST'],
      url: '/auth/*',
      handler: (request, reply) => answer(identity, door, request, reply),
    });
  };
}

/** For pages that the links in emails open, and the page that reports an error. */
const guards = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
} as const;

async function answer(
  identity: Identity,
  door: AuthLoader,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  reply.headers(guards);
  // the path of a link is a secret, even when a mail program has added to it
  if (request.url.includes('/reset-password/')) noteFacts(request, { path: `${authBase}/reset-password/…` });
  const outcome = await callAuth(identity, door, request);
  if (outcome.kind === 'refused') {
    const { code, retryAfterSecs } = outcome;
    return sendRefusal(request, reply, code, retryAfterSecs === undefined ? {} : { retryAfterSecs });
  }
  const { status, text, type, location, cookies } = outcome;
  if (location !== null) reply.header('location', location);
  if (cookies.length > 0) reply.header('set-cookie', cookies);
  if (type !== null) reply.type(type);
  return reply.code(status).send(text);
}
