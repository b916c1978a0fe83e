import { tokenName } from '../../base/values/token.ts';
import { askRate } from '../use-cases/ask-rates.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 500;
const fixedPollMs = 30_000;

/**
 * Asks the sources of the tokens' rates, each when it is due: one gateway at a time does. A slow source delays no other token. A fixed
 * rate has rounds where its age matters.
 */
export function startRateAsker(current: () => JobsContext): Loop {
  const asking = new Map<string, Promise<void>>();
  let fixedFromMs = 0;
  return startLoop(
    async () => {
      const context = current();
      const isFixedDue = performance.now() >= fixedFromMs;
      if (isFixedDue) fixedFromMs = performance.now() + fixedPollMs;
      const tokens = context.settings.acceptedTokens.filter(
        ({ rateTerms, fixedRateMaxAgeSecs }) =>
          rateTerms ?? (isFixedDue && fixedRateMaxAgeSecs !== undefined),
      );
      for (const token of tokens) {
        const name = tokenName(token);
        if (asking.has(name)) continue;
        const asked = askRate(context, token)
          .catch((error: unknown) => {
            const { network, asset } = token;
            context.log.warn(
              { err: error, network, asset },
              'the round of a rate could not be recorded: it is repeated',
            );
          })
          .finally(() => asking.delete(name));
        asking.set(name, asked);
      }
    },
    {
      pollMs,
      log: current().log,
      failureMessage: 'the rates could not be asked for',
      onStopped: () => Promise.all(asking.values()),
    },
  );
}
