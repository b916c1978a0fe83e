import type { JobsContext } from '../use-cases/context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { readListingLook, beginListingLook, endListingLook } from '../store/listing-rounds.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';
import { startRounds } from '../../ledger/workers/rounds.ts';
import type { DiscoveryConfig } from '../../base/config/config.ts';
import { afterLook } from '../../base/values/discovery/listing.ts';
import { lookForListings } from '../peers/discovery/look-for-listings.ts';
import { listableJobs } from '../use-cases/listings.ts';

const pollMs = 500;

/** Looks for our own listings in the discovery service when it is due: one gateway at a time does. None if none is watched. */
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

/** Follows the looks of all gateways, for `/status`, the metrics and the alerts of this one. None if none is watched. */
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

/** A look is over by its own time limit before another gateway begins one. */
const leaseMarginMs = 30_000;

/** Looks for our own listings if that is due and no other gateway does. */
async function lookForOwnListings(
  context: JobsContext,
  discovery: DiscoveryConfig,
  stopping: AbortSignal,
): Promise<void> {
  const { pool, log, settings } = context;
  const { url, everySecs, maxPages, timeoutMs, lookTimeoutSecs } = discovery;
  const sold = new Set(listableJobs(context).keys());
  if (sold.size === 0) return;
  const lookTimeoutMs = lookTimeoutSecs * 1_000;
  const begun = await beginListingLook(pool, url, lookTimeoutMs + leaseMarginMs);
  if (!begun) return;
  const known = new Set(begun.state.listings.map(({ key }) => key));
  const payees = [...new Set(settings.acceptedTokens.map(({ payTo }) => payTo))];
  const limits = { maxPages, timeoutMs, lookTimeoutMs };
  const terms = { url, payees, wanted: sold.union(known), known, ...limits };
  const { look, ...answer } = await lookForListings(terms, stopping);
  if (look === 'stopped') return void (await endListingLook(pool, url, { ...begun, dueMs: 0 }));
  const state = afterLook(begun.state, sold, look, nowSecs(context));
  const dueMs = Math.max(everySecs * 1_000, 'retryAfterMs' in answer ? (answer.retryAfterMs ?? 0) : 0);
  await endListingLook(pool, url, { look: begun.look, state, dueMs });
  const { problem } = state;
  if (problem !== undefined && problem !== begun.state.problem)
    log.warn(
      { host: new URL(url).host, problem },
      'a look at the discovery service was not conclusive: whether this gateway is listed is not known',
    );
}
