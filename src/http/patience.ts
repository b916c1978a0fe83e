import type { Refused } from '../gateway/answer.ts';
import type { Gateway } from '../gateway/gateway.ts';

const patienceMs = 5_000;
const lookEveryMs = 250;

/**
 * Answers that give up once the ledger has been away for a while. The flow behind an answer goes on whatever happens to
 * it: the same request, sent again, gets the outcome.
 */
export interface Patience {
  /** The flow's answer, or `ledger_unavailable` where the ledger stayed away too long. */
  within<T>(flow: Promise<T>): Promise<T | Refused>;
  end(): void;
}

/** One timer looks after all waiting answers, and only while there are any. */
export function createPatience({ lane, log }: Pick<Gateway, 'lane' | 'log'>): Patience {
  const waiting = new Set<(refused: Refused) => void>();
  let timer: NodeJS.Timeout | undefined;

  const look = (): void => {
    if (waiting.size === 0) return end();
    const { brokenSince } = lane.state;
    if (brokenSince === undefined || Date.now() - brokenSince < patienceMs) return;
    for (const giveUp of waiting) giveUp({ kind: 'refused', code: 'ledger_unavailable', retryAfterSecs: 2 });
  };
  const end = (): void => {
    clearInterval(timer);
    timer = undefined;
  };

  return {
    within(flow) {
      return new Promise((resolve, reject) => {
        waiting.add(resolve);
        timer ??= setInterval(look, lookEveryMs);
        flow
          .then(resolve, (error: unknown) => {
            // after its answer was given up nobody hears this but the operator
            log.error({ err: error }, 'a paid flow failed');
            reject(error instanceof Error ? error : new Error(String(error)));
          })
          .finally(() => waiting.delete(resolve));
      });
    },
    end,
  };
}
