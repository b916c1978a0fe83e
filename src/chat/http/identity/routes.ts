import type { FastifyInstance } from 'fastify';
import type { AuthLoader } from '../../../accounts/use-cases/auth-loader.ts';
import type { Identity } from '../../../accounts/use-cases/context.ts';
import type { ChatContext } from '../../use-cases/context.ts';
import { authRoutes } from '../../../accounts/http/auth.ts';
import { sendRefusal } from '../../../ledger/http/errors.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { isOfOwnPages } from '../../../accounts/http/own-origin.ts';
import { chargeVisits } from '../../../accounts/http/charge-visits.ts';
import { siweRoutes } from '../../../accounts/http/siwe.ts';
import { walletRoutes } from './wallets.ts';

const bodyLimit = 32_768;

/**
 * User accounts: sign-in and sessions, everything below `/api`. Refuses requests from pages of other origins.
 * @param current undefined if no models are sold: there are no API keys then
 */
export function identityRoutes(
  identity: Identity,
  door: AuthLoader,
  current: (() => ChatContext) | undefined,
) {
  const below = async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', async (request, reply) => {
      if (!isOfOwnPages(request, identity.publicUrl(), identity.settings.trustedOrigins))
        return sendRefusal(request, reply, 'wrong_origin');
    });
    chargeVisits(app, identity);
    app.addHook('onRoute', (route) => {
      route.bodyLimit = bodyLimit;
    });
    await app.register(authRoutes(identity, door));
    await app.register(siweRoutes(identity, door));
    await app.register(walletRoutes(identity));
    if (current) await app.register(apiKeyRoutes(identity, current));
  };
  return async (app: FastifyInstance): Promise<void> => {
    await app.register(below, { prefix: '/api' });
  };
}
