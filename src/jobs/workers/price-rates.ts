import { tokenName } from '../../base/values/token.ts';
import { askRate } from '../use-cases/ask-rates.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import { startRounds } from '../../ledger/workers/rounds.ts';
import { extendMs } from '../use-cases/price-list.ts';
import { extendPrices } from '../../payments/store/price-windows.ts';

const pollMs = 500;
const fixedPollMs = 30_000;

/**
 * Asks the sources of the tokens' rates, each when it is due: one gateway at a time does. A fixed rate has rounds if its age matters.
 */
export function startRateAsker(current: () => JobsContext): Loop {
  return startRounds({
    items: () =>
      current().settings.acceptedTokens.filter(
        ({ rateTerms, fixedRateMaxAgeSecs }) => rateTerms ?? fixedRateMaxAgeSecs !== undefined,
      ),
    nameOf: (token) => `${tokenName(token)} ${token.rateTerms ? 'asked' : 'fixed'}`,
    async run(token) {
      await askRate(current(), token);
      if (!token.rateTerms) return fixedPollMs;
    },
    pollMs,
    log: current().log,
    failureMessage: 'the rates could not be asked for',
    roundFailureMessage: 'the round of a rate could not be recorded: it is repeated',
    roundFields: ({ network, asset }) => ({ network, asset }),
  });
}

const followMs = 250;

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
    {
      pollMs: followMs,
      log: current().log,
      failureMessage: 'the rates could not be read: they end by their age',
    },
  );
}

/** Keeps the prices that this gateway offers to version 1 clients payable. */
export function startPriceExtender(current: () => JobsContext): Loop {
  return startLoop(() => extendPrices(current().pool, current().priceList), {
    pollMs: extendMs,
    log: current().log,
    failureMessage:
      'the offered prices could not be extended: version 1 clients may lose them when they change',
  });
}
