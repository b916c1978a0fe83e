import { schemes } from '../domain/payments/schemes/schemes.ts';
import type { Chain } from '../peers/chain/chain.ts';
import { oldestDueMs } from '../store/calls.ts';
import type { JobsContext } from './context.ts';
import { refreshOffers } from './offers.ts';

interface Check {
  readonly ok: boolean;
  /** What is wrong or worth knowing. */
  readonly detail?: string;
}

/** Whether this gateway can take payments, and if not, which part of it cannot. */
export interface Readiness {
  readonly status: 'ready' | 'not_ready';
  readonly checked_at: string;
  readonly database: Check;
  readonly migrations: Check;
  readonly facilitator: Check;
  readonly chains: Readonly<Record<string, Check>>;
  readonly outbox: Check & { readonly open_calls: number; readonly oldest_due_ms: number };
}

const unchecked: Check = { ok: false, detail: 'not checked yet' };

export const notReadyYet: Readiness = {
  status: 'not_ready',
  checked_at: new Date(0).toISOString(),
  database: unchecked,
  migrations: unchecked,
  facilitator: unchecked,
  chains: {},
  outbox: { ...unchecked, open_calls: 0, oldest_due_ms: 0 },
};

/** A due call that waits longer than this shows that deliveries fail. */
const lateMs = 300_000;

/** Checks every part once. Never throws: a part that cannot be checked is not ready. */
export async function checkReadiness(
  context: JobsContext,
  pendingMigrations: () => Promise<readonly string[]>,
): Promise<Readiness> {
  const [outbox, migrations, facilitator, chains] = await Promise.all([
    checkOutbox(context),
    checkMigrations(pendingMigrations),
    checkFacilitator(context),
    checkChains(context),
  ]);
  const database: Check = outbox.reached ? { ok: true } : { ok: false, detail: 'cannot be reached' };
  // a network without an RPC is only a warning
  const all = [database, migrations, facilitator, outbox.check, ...Object.values(chains)];
  return {
    status: all.every(({ ok }) => ok) && !context.stopping() ? 'ready' : 'not_ready',
    checked_at: new Date().toISOString(),
    database,
    migrations,
    facilitator,
    chains,
    outbox: outbox.check,
  };
}

/**
 * The last check, with the present state of the ledger and of the circuit breaker: no payment is started while the ledger is
 * halted or the circuit is open.
 */
export function presentReadiness({ facilitator, lane }: JobsContext, checked: Readiness): Readiness {
  const { halt } = lane.state;
  if (halt) return { ...checked, status: 'not_ready', database: { ok: false, detail: halt.reason } };
  if (!facilitator.isCircuitOpen()) return checked;
  const details = [checked.facilitator.detail, 'circuit breaker open: no payments are started'];
  const detail = details.filter((text) => text !== undefined).join('; ');
  return { ...checked, status: 'not_ready', facilitator: { ok: false, detail } };
}

async function checkOutbox(context: JobsContext) {
  const { openCalls, unsettledCalls } = context.lane.state;
  const { maxOutstandingCalls, maxUnsettledCalls } = context.config.limits;
  try {
    const oldest = await oldestDueMs(context.pool);
    const details = [
      ...(openCalls >= maxOutstandingCalls ? [`full: ${openCalls} calls`] : []),
      ...(unsettledCalls >= maxUnsettledCalls ? [`full: ${unsettledCalls} payments without an outcome`] : []),
      ...(oldest > lateMs ? ['due calls are not taken by runners'] : []),
    ];
    const check = {
      ok: details.length === 0,
      ...(details.length > 0 ? { detail: details.join('; ') } : {}),
      open_calls: openCalls,
      oldest_due_ms: oldest,
    };
    return { reached: true, check };
  } catch {
    return {
      reached: false,
      check: { ok: false, detail: 'unknown', open_calls: openCalls, oldest_due_ms: 0 },
    };
  }
}

async function checkMigrations(pendingMigrations: () => Promise<readonly string[]>): Promise<Check> {
  try {
    const pending = await pendingMigrations();
    return pending.length === 0 ? { ok: true } : { ok: false, detail: `pending: ${pending.join(', ')}` };
  } catch {
    return { ok: false, detail: 'unknown' };
  }
}

async function checkFacilitator(context: JobsContext): Promise<Check> {
  const answer = await refreshOffers(context);
  if (answer.kind === 'unavailable') return { ok: false, detail: `unavailable: ${answer.cause}` };
  const missing = context.settings.acceptedTokens
    .filter((token) => !context.offers.isSettled(token))
    .map(({ network, transferMethod }) => `${schemes[transferMethod].x402Scheme} payments on ${network}`);
  return missing.length === 0
    ? { ok: true }
    : { ok: false, detail: `does not settle ${[...new Set(missing)].join(', ')}` };
}

async function checkChains(context: JobsContext): Promise<Record<string, Check>> {
  const networks = [...new Set(context.settings.acceptedTokens.map(({ network }) => network))];
  const checks = networks.map(
    async (network) => [network, await checkChain(context.chains.get(network))] as const,
  );
  return Object.fromEntries(await Promise.all(checks));
}

async function checkChain(chain: Chain | undefined): Promise<Check> {
  if (!chain) return { ok: true, detail: 'no RPC: settlements are not confirmed on this chain' };
  const answer = await chain.checkChainId();
  if (answer.kind === 'unavailable') return { ok: false, detail: `unavailable: ${answer.cause}` };
  return answer.matches ? { ok: true } : { ok: false, detail: 'the RPC serves another chain' };
}
