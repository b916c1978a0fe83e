import type { ChatContext } from './context.ts';
import type { SpendContext } from '../spend/context.ts';

interface Check {
  readonly ok: boolean;
  /** What is wrong, without any text of a peer. */
  readonly detail?: string;
}

/** Whether this gateway can make completions, from what it knows without calling a peer. */
export interface ChatReadiness {
  readonly status: 'ready' | 'not_ready';
  readonly database: Check;
  /** By the name that clients use. */
  readonly models: Readonly<Record<string, Check>>;
  /** Present when spend authorizations are accepted. `status` does not depend on it. */
  readonly spend_auth?: Check;
}

/** Ready while the ledger answers and at least one model has an upstream whose circuit is not open. */
export function chatReadiness(context: ChatContext): ChatReadiness {
  const { models, health, lane, spending, stopping } = context;
  const { brokenSince, halt } = lane.state;
  const detail = halt ? halt.reason : brokenSince === undefined ? undefined : 'cannot be reached';
  const database: Check = detail === undefined ? { ok: true } : { ok: false, detail };
  const checks = [...models.values()].map(({ name, targets }): [string, Check] => [
    name,
    targets.some(({ upstream, model }) => health.circuitOf({ name: upstream, model }) !== 'open')
      ? { ok: true }
      : { ok: false, detail: 'its upstreams fail' },
  ]);
  const isReady = database.ok && checks.some(([, { ok }]) => ok) && !stopping();
  return {
    status: isReady ? 'ready' : 'not_ready',
    database,
    models: Object.fromEntries(checks),
    ...(spending && { spend_auth: spendCheck(spending) }),
  };
}

function spendCheck({ operatorBalance }: SpendContext): Check {
  return operatorBalance.isLow()
    ? { ok: false, detail: 'the operator has too little ether to land and pay out spends' }
    : { ok: true };
}

/** The same as one check: which models cannot be served, and whether spends can be paid out. */
export function chatCheck(context: ChatContext): Check {
  const { models, spend_auth: spends } = chatReadiness(context);
  const failing = Object.entries(models).filter(([, { ok }]) => !ok);
  const details = spends?.detail === undefined ? [] : [spends.detail];
  if (failing.length > 0)
    details.unshift(`the upstreams fail of ${failing.map(([name]) => name).join(', ')}`);
  return details.length === 0 ? { ok: true } : { ok: false, detail: details.join('; ') };
}
