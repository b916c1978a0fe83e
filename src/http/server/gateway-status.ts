import type { FastifyInstance } from 'fastify';
import type { Lane, LaneState } from '../../store/lane.ts';
import type { GatewayStatus } from '../schemas/status.ts';

/** GET /status: for people and monitors, always 200. Load balancers ask the readiness of a feature instead. */
export function gatewayStatusRoutes(lane: Lane) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/status', async (_request, reply) =>
      reply.header('cache-control', 'no-store').send(statusOf(lane.state)),
    );
  };
}

function statusOf({ halt, brokenSince }: LaneState): GatewayStatus {
  if (halt) return { status: 'critical', ledger: { status: 'critical', detail: halt.reason } };
  if (brokenSince === undefined) return { status: 'ok', ledger: { status: 'ok' } };
  const since = new Date(brokenSince).toISOString();
  return { status: 'degraded', ledger: { status: 'degraded', detail: 'cannot be reached', since } };
}
