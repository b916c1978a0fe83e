import type { JobsContext } from '../jobs/context.ts';
import { adoptRefunds } from '../refunds/adopt-refunds.ts';
import { followRefunds } from '../refunds/follow-refunds.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 60_000;

/** Ends started refunds by what the chain shows, and first takes over those of earlier versions. */
export function startRefundFollower(current: () => JobsContext): Loop {
  const { log } = current();
  let isAdopted = false;
  return startLoop(
    async () => {
      const { pool, lane, chains } = current();
      if (!isAdopted) {
        for (const digest of await adoptRefunds({ pool, lane }))
          log.warn(
            { quote_digest: digest },
            'a refund that an earlier version started is under way beside a call that may be delivered: look into the wallet that was asked',
          );
        isAdopted = true;
      }
      await followRefunds({ pool, lane }, chains);
    },
    { pollMs, log, failureMessage: 'the refunds under way could not be followed' },
  );
}
