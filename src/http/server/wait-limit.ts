import type { Lane } from '../../store/lane.ts';

const maxWaitMs = 5_000;
const checkEveryMs = 250;

/**
 * Answers that give up once the ledger has been away for a while. The flow behind an answer goes on whatever happens to
 * it: the same request, sent again, gets the outcome.
 */
export interface WaitLimit<Refused> {
  /** The flow's answer, or the refusal where the ledger stayed away too long. */
  within<T>(flow: Promise<T>): Promise<T | Refused>;
  end(): void;
}

interface Parts<Refused> {
  readonly lane: Lane;
  readonly log: { error(fields: object, message: string): void };
  /** The answer of who gives up. */
  readonly refused: Refused;
}

/** One timer looks after all waiting answers, and only while there are any. */
export function createWaitLimit<Refused>({ lane, log, refused }: Parts<Refused>): WaitLimit<Refused> {
  const waiting = new Set<(refused: Refused) => void>();
  let timer: NodeJS.Timeout | undefined;

  const look = (): void => {
    if (waiting.size === 0) return end();
    const { brokenSince } = lane.state;
    if (brokenSince === undefined || Date.now() - brokenSince < maxWaitMs) return;
    for (const giveUp of waiting) giveUp(refused);
  };
  const end = (): void => {
    clearInterval(timer);
    timer = undefined;
  };

  return {
    within(flow) {
      return new Promise((resolve, reject) => {
        waiting.add(resolve);
        timer ??= setInterval(look, checkEveryMs);
        flow
          .then(resolve, (error: unknown) => {
            // after its answer was given up nobody hears this but the operator
            log.error({ err: error }, 'what a request began has failed');
            reject(error instanceof Error ? error : new Error(String(error)));
          })
          .finally(() => waiting.delete(resolve));
      });
    },
    end,
  };
}
