import type { OperatorLog } from '../values/operator-log.ts';

/** A line for each use would fill the log during a change of secrets. */
const everyMs = 60_000;

const loggedAtMs = new WeakMap<OperatorLog, Map<string, number>>();

/**
 * Logs that a second secret was used, by the name of its key in the configuration: at most once a minute for each name. So the
 * operator sees that the last secret is still in use after a change.
 */
export function logSecondSecret(log: OperatorLog, secret: string): void {
  const nowMs = performance.now();
  const times = loggedAtMs.get(log) ?? new Map<string, number>();
  loggedAtMs.set(log, times);
  const last = times.get(secret);
  if (last !== undefined && nowMs - last < everyMs) return;
  times.set(secret, nowMs);
  log.info({ secret }, 'a second secret was used');
}
