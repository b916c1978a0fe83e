import type { DiscoveryConfig } from '../../base/config/config.ts';
import { afterLook } from '../../base/values/discovery/listing.ts';
import { lookForListings } from '../peers/discovery/look-for-listings.ts';
import { beginListingLook, endListingLook } from '../store/listing-looks.ts';
import type { JobsContext } from './context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { listableJobs } from './listings.ts';

/** A look is over by its own time limit before another gateway begins one. */
const leaseMarginMs = 30_000;

/** Looks for our own listings where that is due and no other gateway does. */
export async function lookForOwnListings(
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
