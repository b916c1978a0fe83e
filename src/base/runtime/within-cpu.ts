import { cpuUsage } from 'node:process';
import { createContext, Script } from 'node:vm';

export type CpuResult<T> = { readonly kind: 'done'; readonly value: T } | { readonly kind: 'too_long' };

const context = createContext({ work: undefined }) as { work: (() => void) | undefined };
const script = new Script('work()');
/** On a machine that runs other programs meanwhile, time passes in which nothing is computed. */
const maxTries = 3;

/**
 * Does work on this thread that may take longer than its input suggests, such as a pattern of the operator on a text of a client, and breaks it
 * off after some milliseconds. Each call costs about 0.2 ms. The work must change nothing: it may be broken off anywhere, and done again.
 */
export function withinCpuMs<T>(limitMs: number, work: () => T): CpuResult<T> {
  for (let tries = 1; ; tries++) {
    const before = cpuUsage();
    let value: { readonly of: T } | undefined;
    context.work = () => void (value = { of: work() });
    try {
      script.runInContext(context, { timeout: limitMs });
    } catch (error) {
      if (!isTimeout(error)) throw error;
    } finally {
      context.work = undefined;
    }
    if (value) return { kind: 'done', value: value.of };
    const { user, system } = cpuUsage(before);
    if (tries === maxTries || (user + system) / 1_000 > limitMs / 2) return { kind: 'too_long' };
  }
}

/** Its error is made by the context, which has its own `Error`. */
function isTimeout(error: unknown): boolean {
  const isObject = typeof error === 'object' && error !== null;
  return isObject && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}
