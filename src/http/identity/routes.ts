import type { FastifyInstance } from 'fastify';
import type { AuthLoader } from '../../identity/auth-loader.ts';
import type { Identity } from '../../identity/context.ts';
import type { ChatContext } from '../../chat/context.ts';
import { authRoutes } from './auth.ts';
import { sendRefusal } from '../server/errors.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { isOfOwnPages } from './own-origin.ts';
import { siweRoutes } from './siwe.ts';
import { walletRoutes } from './wallets.ts';

const bodyLimit = 32_768;

/** User accounts: sign-in, sessions and API keys, everything below `/api`. Refuses requests from pages of other origins. */
export function identityRoutes(identity: Identity, door: AuthLoader, current: () => ChatContext) {
  const below = async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', async (request, reply) => {
      if (!isOfOwnPages(request, identity.publicUrl())) return sendRefusal(request, reply, 'wrong_origin');
    });
    app.addHook('onRoute', (route) => {
      route.bodyLimit = bodyLimit;
    });
    await app.register(authRoutes(identity, door));
    await app.register(siweRoutes(identity, door));
    await app.register(walletRoutes(identity));
    await app.register(apiKeyRoutes(identity, current));
  };
  return async (app: FastifyInstance): Promise<void> => {
    await app.register(below, { prefix: '/api' });
  };
}
