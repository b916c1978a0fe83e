import type { FastifyInstance } from 'fastify';
import type { Lane, LaneState } from '../../store/lane.ts';
import type { GatewayStatus } from '../schemas/status.ts';

/** A part that works, or the reason why not. */
interface Check {
  readonly ok: boolean;
  readonly detail?: string;
}

/** GET /status: for people and monitors, always 200. Load balancers ask the readiness of a feature instead. */
export function gatewayStatusRoutes(lane: Lane, workers: () => Check = () => ({ ok: true })) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/status', async (_request, reply) =>
      reply.header('cache-control', 'no-store').send(statusOf(lane.state, workers())),
    );
  };
}

function statusOf(state: LaneState, { ok, ...detail }: Check): GatewayStatus {
  const ledger = ledgerStatus(state);
  const workers = { status: ok ? ('ok' as const) : ('degraded' as const), ...detail };
  return { status: ledger.status === 'ok' ? workers.status : ledger.status, ledger, workers };
}

function ledgerStatus({ halt, brokenSince }: LaneState): GatewayStatus['ledger'] {
  if (halt) return { status: 'critical', detail: halt.reason };
  if (brokenSince === undefined) return { status: 'ok' };
  return { status: 'degraded', detail: 'cannot be reached', since: new Date(brokenSince).toISOString() };
}
