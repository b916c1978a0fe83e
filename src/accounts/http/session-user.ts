import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Identity } from '../use-cases/context.ts';
import { resolveSession, type SessionUser } from '../use-cases/sessions.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';

/** The user of a request's session. A key has no rights of a user: a request with an explicit credential ignores the cookie. */
async function sessionUserOf(
  identity: Identity,
  { headers }: FastifyRequest,
): Promise<SessionUser | undefined> {
  if (headers.authorization !== undefined || headers['x-payment-signature'] !== undefined) return undefined;
  const session = await resolveSession(identity, headers.cookie);
  return session.kind === 'session' ? session.user : undefined;
}

/** Routes only for users. */
export interface UserGuard {
  /** The hook that refuses a request without a session before its body is read. */
  readonly onRequest: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined>;
  /** The user of a request that passed the hook. */
  userOf(request: FastifyRequest): SessionUser;
}

export function guardForUsers(identity: Identity): UserGuard {
  const users = new WeakMap<FastifyRequest, SessionUser>();
  return {
    async onRequest(request, reply) {
      reply.header('cache-control', 'no-store');
      const user = await sessionUserOf(identity, request);
      if (!user) return sendRefusal(request, reply, 'session_required');
      users.set(request, user);
      return undefined;
    },
    userOf(request) {
      const user = users.get(request);
      if (!user) throw new Error('a route for users was not authenticated');
      return user;
    },
  };
}
