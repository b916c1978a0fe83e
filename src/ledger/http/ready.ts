import type { FastifyInstance } from 'fastify';
import type { ReadinessJson } from './status.ts';

/** GET PREFIX/ready: for load balancers. */
export function readyRoutes(readiness: () => ReadinessJson) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/ready', async (_request, reply) => {
      const state = readiness();
      return reply
        .code(state.status === 'ready' ? 200 : 503)
        .header('cache-control', 'no-store')
        .send(state);
    });
  };
}
