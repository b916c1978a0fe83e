import type { FastifyInstance } from 'fastify';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import type { LaneState } from '../../ledger/store/lane.ts';
import { authorizeOperator } from './operator-access.ts';
import type { FeatureStatus, GatewayStatus } from '../../ledger/http/status.ts';
import { sendError, sendRefusal } from '../../ledger/http/errors.ts';
import type { Check } from '../../base/values/check.ts';

type LedgerState = {
  readonly halt: Pick<NonNullable<LaneState['halt']>, 'reason'> | undefined;
} & Pick<LaneState, 'brokenSince'>;

interface Parts {
  readonly ledger: { readonly db: LedgerDatabase; readonly lane: { readonly state: LedgerState } };
  readonly workers: () => Check;
  /** The features that are switched on. */
  readonly features: () => FeatureStatus;
}

/**
 * GET /status: for people and monitors, always 200 without a token. Load balancers ask the readiness instead. What is wrong, and
 * with which peer, is for operators only.
 */
export function gatewayStatusRoutes({ ledger, workers, features }: Parts) {
  const whole = (): GatewayStatus => statusOf(ledger.lane.state, workers(), features());
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/status', async (request, reply) => {
      reply.header('cache-control', 'no-store');
      if (request.headers.authorization === undefined) return reply.send(inPublic(whole()));
      try {
        const access = await authorizeOperator(ledger, request, 'status:read');
        if (access.kind === 'refused') return sendRefusal(request, reply, access.code);
      } catch (error) {
        return sendError(error instanceof Error ? error : new Error(String(error)), request, reply);
      }
      return reply.send(whole());
    });
  };
}

function statusOf(state: LedgerState, { ok, ...detail }: Check, features: FeatureStatus): GatewayStatus {
  const ledger = ledgerStatus(state);
  const workers: GatewayStatus['workers'] = { status: ok ? 'ok' : 'degraded', ...detail };
  const areOk = [ledger, workers, ...Object.values(features)].every((part) => part?.status === 'ok');
  const status = ledger.status === 'critical' ? 'critical' : areOk ? 'ok' : 'degraded';
  return { status, ledger, workers, ...features };
}

function ledgerStatus({ halt, brokenSince }: LedgerState): GatewayStatus['ledger'] {
  if (halt) return { status: 'critical', detail: halt.reason };
  if (brokenSince === undefined) return { status: 'ok' };
  return { status: 'degraded', detail: 'cannot be reached', since: new Date(brokenSince).toISOString() };
}

/** Every part only with its state. */
function inPublic({ status, ...parts }: GatewayStatus): GatewayStatus {
  const states = Object.entries(parts).flatMap(([name, part]) =>
    part ? [[name, { status: part.status }]] : [],
  );
  return { status, ...(Object.fromEntries(states) as Omit<GatewayStatus, 'status'>) };
}
