import type { Since } from '../../base/runtime/since.ts';
import type { SpendContext, ChatContext } from './context.ts';
import type { Check } from '../../base/values/check.ts';

/** Which models can be served, without calling an upstream. */
export interface ChatStatus {
  readonly status: 'ok' | 'degraded';
  readonly since: string;
  /** By the name that clients use. */
  readonly models: Readonly<Record<string, Check>>;
  /** Present when spend authorizations are accepted. */
  readonly spend_auth?: Check;
}

/**
 * A model is served while one of its upstreams has a closed circuit. One that is being tested again is not served yet: an upstream
 * that never answers would look well for as long as each test takes.
 */
export function chatStatus({ models, health, spending }: ChatContext, since: Since): ChatStatus {
  const checks = [...models.values()].map(({ name, targets }): [string, Check] => {
    const ok = targets.some(
      ({ upstream, model }) => health.circuitOf({ name: upstream, model }) === 'closed',
    );
    const detail = ok ? {} : { detail: 'its upstreams fail' };
    return [name, { ok, ...detail, since: since.of(`model ${name}`, ok) }];
  });
  const spends = spending && spendCheck(spending, since);
  const ok = checks.every(([, check]) => check.ok) && spends?.ok !== false;
  return {
    status: ok ? 'ok' : 'degraded',
    since: since.of('chat', ok),
    models: Object.fromEntries(checks),
    ...(spends && { spend_auth: spends }),
  };
}

function spendCheck({ operatorBalance }: SpendContext, since: Since): Check {
  const ok = !operatorBalance.isLow();
  const detail = ok ? {} : { detail: 'the operator has too little ether to land and pay out spends' };
  return { ok, ...detail, since: since.of('spend_auth', ok) };
}
