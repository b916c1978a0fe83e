import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Lane } from '../store/lane.ts';

const maxWaitMs = 5_000;
const checkEveryMs = 250;

/**
 * Limits how long requests wait for an unreachable ledger. A request's flow continues after the limit: the same
 * request, sent again, gets its outcome.
 */
export interface WaitLimit<Refused> {
  /** The flow's answer, or the refusal if the ledger was unreachable for too long. */
  within<T>(flow: Promise<T>): Promise<T | Refused>;
  end(): void;
}

interface Parts<Refused> {
  readonly lane: Lane;
  readonly log: Pick<OperatorLog, 'error'>;
  /** The answer after the limit. */
  readonly refused: Refused;
}

/** One timer serves all waiting requests; it runs only while there are any. */
export function createWaitLimit<Refused>({ lane, log, refused }: Parts<Refused>): WaitLimit<Refused> {
  const waiting = new Set<(refused: Refused) => void>();
  let timer: NodeJS.Timeout | undefined;

  const check = (): void => {
    if (waiting.size === 0) return end();
    const { brokenSince } = lane.state;
    if (brokenSince === undefined || Date.now() - brokenSince < maxWaitMs) return;
    for (const giveUp of waiting) {
      waiting.delete(giveUp);
      giveUp(refused);
    }
  };
  const end = (): void => {
    clearInterval(timer);
    timer = undefined;
  };

  return {
    within(flow) {
      return new Promise((resolve, reject) => {
        waiting.add(resolve);
        timer ??= setInterval(check, checkEveryMs);
        flow
          .then(resolve, (error: unknown) => {
            // after the limit the log is the only place where this error appears
            if (!waiting.has(resolve))
              log.error({ err: error }, 'a request failed after its client had its answer');
            reject(error instanceof Error ? error : new Error(String(error)));
          })
          .finally(() => waiting.delete(resolve));
      });
    },
    end,
  };
}
