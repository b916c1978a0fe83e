import type { FastifyInstance } from 'fastify';
import { chatReadiness } from '../../chat/readiness.ts';
import type { ChatContext } from '../../chat/context.ts';

/** GET /v1/ready: for load balancers. */
export function readyRoutes(current: () => ChatContext) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/ready', async (_request, reply) => {
      const state = chatReadiness(current());
      return reply
        .code(state.status === 'ready' ? 200 : 503)
        .header('cache-control', 'no-store')
        .send(state);
    });
  };
}
