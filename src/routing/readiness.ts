import type { Routing } from './routing.ts';

interface Check {
  readonly ok: boolean;
  /** What is wrong: our own words. */
  readonly detail?: string;
}

/** Whether completions can be made here, from what is known without asking anybody. */
export interface RoutingReadiness {
  readonly status: 'ready' | 'not_ready';
  readonly database: Check;
  /** By the name that clients use. */
  readonly models: Readonly<Record<string, Check>>;
}

/** Ready while the ledger answers and some model has an upstream that may be asked. */
export function routingReadiness(routing: Routing): RoutingReadiness {
  const { models, health, lane, stopping } = routing;
  const database: Check =
    lane.state.brokenSince === undefined ? { ok: true } : { ok: false, detail: 'cannot be reached' };
  const checks = [...models.values()].map(({ name, targets }): [string, Check] => [
    name,
    targets.some(({ upstream, model }) => health.circuitOf({ name: upstream, model }) !== 'open')
      ? { ok: true }
      : { ok: false, detail: 'its upstreams fail' },
  ]);
  const isReady = database.ok && checks.some(([, { ok }]) => ok) && !stopping();
  return { status: isReady ? 'ready' : 'not_ready', database, models: Object.fromEntries(checks) };
}

/** The same in one line: which models cannot be served. */
export function routingCheck(routing: Routing): Check {
  const { models } = routingReadiness(routing);
  const failing = Object.entries(models).filter(([, { ok }]) => !ok);
  if (failing.length === 0) return { ok: true };
  return { ok: false, detail: `the upstreams fail of ${failing.map(([name]) => name).join(', ')}` };
}
