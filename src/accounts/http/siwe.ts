import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { StartedSession } from '../use-cases/auth.ts';
import type { AuthLoader } from '../use-cases/auth-loader.ts';
import type { Identity } from '../use-cases/context.ts';
import { endFormerSession, isHttps, sessionCookieName } from '../use-cases/sessions.ts';
import { signedValue } from '../use-cases/signed-values.ts';
import { takeAttempt } from '../use-cases/sign-in-limits.ts';
import { issueNonce, signInByWallet, type SiweTerms, type WalletAnswer } from '../use-cases/siwe.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { addressOf } from '../../base/http/request-values.ts';
import { type SignedInJson, type SiweTermsJson, siweVerify } from './schemas/identity.ts';

/** Sign-In with Ethereum: issues a nonce, and a session for the wallet that signed it. */
export function siweRoutes(identity: Identity, door: AuthLoader) {
  return async (app: FastifyInstance): Promise<void> => {
    app.post('/siwe/nonce', async (request, reply) => {
      const retryAfterSecs = await takeAttempt(identity, addressOf(request), { kind: 'nonce' });
      if (retryAfterSecs > 0) return sendRefusal(request, reply, 'too_many_attempts', { retryAfterSecs });
      const terms = await issueNonce(identity, { origin: request.headers.origin });
      return reply.header('cache-control', 'no-store').send(termsJson(terms));
    });

    app.post('/siwe/verify', async (request, reply) => {
      const body = siweVerify.safeParse(request.body);
      if (!body.success) return sendRefusal(request, reply, 'invalid_request');
      const auth = await door.load(false);
      const answer = await signInByWallet(identity, auth, body.data, addressOf(request));
      if (answer.kind === 'signed_in') await endFormerSession(identity, request.headers.cookie);
      return sendAnswer(identity, request, reply, answer);
    });
  };
}

/** What a message must contain, as the APIs say it. */
export function termsJson({ nonce, domain, uri, chainId, expiresInSecs }: SiweTerms): SiweTermsJson {
  return { nonce, domain, uri, chain_id: chainId, expires_in_secs: expiresInSecs };
}

function sendAnswer(
  identity: Identity,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: WalletAnswer,
): FastifyReply {
  reply.header('cache-control', 'no-store');
  switch (answer.kind) {
    case 'refused':
      return sendRefusal(request, reply, 'siwe_mismatch', whyRefused(answer));
    case 'disabled':
      return sendRefusal(request, reply, 'user_disabled');
    case 'limited':
      return sendRefusal(request, reply, 'too_many_attempts', { retryAfterSecs: 60 });
    case 'unavailable':
      return sendRefusal(request, reply, 'sign_in_unavailable', { retryAfterSecs: 2 });
    case 'signed_in': {
      const { user, session } = answer;
      const body: SignedInJson = {
        user: { id: user.userId, name: user.name, created_at: user.createdAt.toISOString() },
        session: { expires_at: session.expiresAt.toISOString() },
      };
      return reply.header('set-cookie', walletCookie(identity, session)).send(body);
    }
  }
}

/** For the client too: every reason is about its own message. */
export function whyRefused({ reason }: { readonly reason: string }) {
  return { reason, context: { reason } };
}

/** The cookie of a session that a wallet has started. */
export function walletCookie({ settings, publicUrl }: Identity, { token }: StartedSession): string {
  const value = signedValue(settings.secrets, token);
  const secure = isHttps(publicUrl()) ? '; Secure' : '';
  const cookie = `${sessionCookieName(publicUrl())}=${value}; Max-Age=${settings.sessionDays * 86_400}`;
  return `${cookie}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}
