import type { JobsContext } from '../use-cases/context.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 250;
const fixedPollMs = 30_000;

/** Follows the rounds that any gateway records: puts each new rate in force here, with the prices that follow from it. */
export function startRateFollower(current: () => JobsContext, follow: () => Promise<void>): Loop {
  let fixedFromMs = 0;
  return startLoop(
    async () => {
      const hasSources = current().settings.acceptedTokens.some(({ rateTerms }) => rateTerms);
      if (!hasSources && performance.now() < fixedFromMs) return;
      fixedFromMs = performance.now() + fixedPollMs;
      await follow();
    },
    { pollMs, log: current().log, failureMessage: 'the rates could not be read: they end by their age' },
  );
}
