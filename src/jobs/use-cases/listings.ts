import type { DiscoveryConfig } from '../../base/config/config.ts';
import { judgeListing, type KnownListing, listingKey } from '../../base/values/discovery/listing.ts';
import { type Job, jobUrl } from './catalog.ts';
import type { JobsContext } from './context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';

/** More jobs are not watched. */
const mostWatched = 1_000;

/** The jobs that discovery services may list, by the key of their listing. */
export function listableJobs({
  catalog,
  publicUrl,
}: Pick<JobsContext, 'catalog' | 'publicUrl'>): ReadonlyMap<string, Job> {
  const base = publicUrl();
  const jobs = catalog.values().filter((job) => job.isSold && job.discovery !== undefined);
  const keyed = jobs.take(mostWatched).map((job) => [listingKey(jobUrl(base, job)), job] as const);
  return new Map([...keyed].flatMap(([key, job]) => (key === undefined ? [] : [[key, job]])));
}

/** Our own listings in the discovery service, for the operator. */
export interface ListingStatus {
  readonly host: string;
  /** Why it has said nothing conclusive for longer than the grace; undefined if it has. */
  readonly unknown: string | undefined;
  readonly hasLooked: boolean;
  /** By service: its jobs as `SERVICE/JOB`. */
  readonly services: ReadonlyMap<number, ServiceListings>;
}

interface ServiceListings {
  readonly listed: readonly string[];
  /** Those of them that the last looks did not find: not yet this often, or for this long, that they are gone. */
  readonly missed: readonly string[];
  readonly gone: readonly GoneListing[];
  /** A facilitator lists a job with its first payment. */
  readonly neverListed: readonly string[];
}

export interface GoneListing {
  readonly job: string;
  /** Unix seconds. */
  readonly sinceSecs: number;
  /** It is listed only with the payees of others. */
  readonly hasOtherPayee: boolean;
}

type ListingContext = Pick<JobsContext, 'config' | 'catalog' | 'publicUrl' | 'listings' | 'lane'>;

/** From what this process has read; undefined if no discovery service is watched. */
export function listingStatus(context: ListingContext): ListingStatus | undefined {
  const { discovery } = context.config;
  if (!discovery) return undefined;
  const { state } = context.listings.value ?? {};
  const now = nowSecs(context);
  const jobs = listableJobs(context);
  const known = new Map((state?.listings ?? []).map((listing) => [listing.key, listing]));
  const byService = Map.groupBy(jobs, ([, job]) => job.serviceId);
  const services = [...byService].map(
    ([service, own]) => [service, ofService(own, known, discovery.graceSecs, now)] as const,
  );
  return {
    host: new URL(discovery.url).host,
    unknown: jobs.size === 0 ? undefined : whyUnknown(discovery, state ?? {}, now),
    hasLooked: state?.lookedAtSecs !== undefined,
    services: new Map(services),
  };
}

function ofService(
  jobs: readonly (readonly [key: string, job: Job])[],
  known: ReadonlyMap<string, KnownListing>,
  graceSecs: number,
  now: number,
): ServiceListings {
  const all = jobs.map(([key, { serviceId, jobIndex }]) => {
    const listing = known.get(key);
    return { job: `${serviceId}/${jobIndex}`, listing, verdict: judgeListing(listing, graceSecs, now) };
  });
  const named = (is: string): string[] => all.filter(({ verdict }) => verdict === is).map(({ job }) => job);
  const gone = all
    .filter(({ verdict }) => verdict === 'gone')
    .map(({ job, listing }) => ({
      job,
      sinceSecs: listing?.missingSinceSecs ?? now,
      hasOtherPayee: listing?.hasOtherPayee === true,
    }));
  return { listed: named('listed'), missed: named('missed'), gone, neverListed: named('never_listed') };
}

function whyUnknown(
  { everySecs, graceSecs, lookTimeoutSecs }: DiscoveryConfig,
  {
    unknownSinceSecs,
    problem,
    lookedAtSecs,
  }: Partial<NonNullable<JobsContext['listings']['value']>['state']>,
  now: number,
): string | undefined {
  if (unknownSinceSecs !== undefined && now - unknownSinceSecs >= graceSecs) return problem;
  if (lookedAtSecs === undefined) return undefined;
  // the gateway that looks may have been stopped and started again, and all may have been stopped until now
  const mostSecs = 2 * everySecs + lookTimeoutSecs + graceSecs;
  const sinceSecs = Math.max(lookedAtSecs, performance.timeOrigin / 1_000);
  return now - sinceSecs > mostSecs ? 'not_asked' : undefined;
}
