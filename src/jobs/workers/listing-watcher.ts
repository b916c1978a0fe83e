import type { JobsContext } from '../use-cases/context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { lookForOwnListings } from '../use-cases/look-for-own-listings.ts';
import { readListingLook } from '../store/listing-looks.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import { startRounds } from '../../ledger/workers/rounds.ts';

const pollMs = 500;

/** Looks for our own listings in the discovery service when it is due: one gateway at a time does. None where none is watched. */
export function startListingWatcher(current: () => JobsContext): readonly Loop[] {
  const { config, log } = current();
  const { discovery } = config;
  if (!discovery) return [];
  return [
    startRounds({
      items() {
        const context = current();
        const { dueAtSecs = Infinity } = context.listings.value ?? {};
        return dueAtSecs > nowSecs(context) ? [] : [discovery];
      },
      nameOf: ({ url }) => url,
      run: (service, stopping) => lookForOwnListings(current(), service, stopping),
      pollMs,
      log,
      failureMessage: 'the discovery service could not be looked at',
      roundFailureMessage: 'a look at the discovery service could not be recorded: it is repeated',
    }),
  ];
}

/** Follows the looks of all gateways, for `/status`, the metrics and the alerts of this one. None where none is watched. */
export function startListingFollower(current: () => JobsContext): readonly Loop[] {
  const { config, log } = current();
  const { discovery } = config;
  if (!discovery) return [];
  const step = async (): Promise<void> => {
    const { pool, listings } = current();
    listings.learn(await readListingLook(pool, discovery.url));
  };
  const failureMessage = 'the looks at the discovery service could not be read';
  return [startLoop(step, { pollMs, log, failureMessage })];
}
