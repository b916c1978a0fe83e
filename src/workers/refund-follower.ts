import type { JobsContext } from '../jobs/context.ts';
import { adoptRefunds } from '../refunds/adopt-refunds.ts';
import { followRefunds } from '../refunds/follow-refunds.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 60_000;

/** Ends started refunds by what the chain shows, and takes over those of earlier versions. */
export function startRefundFollower(current: () => JobsContext): Loop {
  const { log } = current();
  const steps = { count: 0 };
  const told = new Set<string>();
  return startLoop(
    async () => {
      const { pool, lane, chains } = current();
      // at each step: a gateway of an earlier version may start one while others are upgraded
      for (const digest of await adoptRefunds({ pool, lane })) {
        if (told.has(digest)) continue;
        told.add(digest);
        log.warn(
          { quote_digest: digest },
          'a refund that an earlier version started is under way beside a call that may be delivered: look into the wallet that was asked',
        );
      }
      await followRefunds({ pool, lane }, chains, steps);
    },
    { pollMs, log, failureMessage: 'the refunds under way could not be followed' },
  );
}
