import type { AlertCondition } from '../../base/values/alert-condition.ts';
import type { GoneListing, ListingStatus } from './listings.ts';

/** More are counted. */
const mostNamed = 10;

/** What the operator is alerted about in the listings: one alert where all are gone, else one for each service that lost some. */
export function listingConditions(status: ListingStatus | undefined): AlertCondition[] {
  if (!status) return [];
  const { host, unknown, services } = status;
  const lost = [...services].filter(([, { gone }]) => gone.length > 0);
  const hasSome = [...services.values()].some(({ listed, missed }) => listed.length + missed.length > 0);
  const gone = lost.flatMap(([, { gone: jobs }]) => jobs);
  const conditions = hasSome
    ? lost.map(([service, { gone: jobs }]) => listingMissing(host, service, jobs))
    : gone.length > 0
      ? [listingGone(host, gone)]
      : [];
  return unknown === undefined ? conditions : [...conditions, discoveryUnknown(host, unknown)];
}

function listingGone(host: string, gone: readonly GoneListing[]): AlertCondition {
  const text =
    `${host} lists none of the jobs any more that it listed: agents that search there do not find this gateway. ` +
    remedy(gone);
  return { kind: 'listing_gone', subject: host, text, details: detailsOf(host, gone) };
}

function listingMissing(host: string, service: number, gone: readonly GoneListing[]): AlertCondition {
  const text = `${host} does not list these jobs any more: ${named(gone)}. ${remedy(gone)}`;
  const details = { service_id: service, ...detailsOf(host, gone) };
  return { kind: 'listing_missing', subject: `service ${service}`, text, details };
}

function discoveryUnknown(host: string, problem: string): AlertCondition {
  const text = `Whether ${host} lists this gateway is not known: its answers are not conclusive (${problem}).`;
  return { kind: 'discovery_unknown', subject: host, text, details: { problem } };
}

function remedy(gone: readonly GoneListing[]): string {
  return gone.some(({ hasOtherPayee }) => hasOtherPayee)
    ? 'Some are listed there with other payees: see the runbook.'
    : 'The next payment of a job carries its entry there again, if the service belongs to the facilitator.';
}

function detailsOf(host: string, gone: readonly GoneListing[]): Record<string, string | number> {
  const sinceSecs = Math.min(...gone.map((job) => job.sinceSecs));
  const others = gone.filter(({ hasOtherPayee }) => hasOtherPayee);
  return {
    host,
    jobs: named(gone),
    missing_since: new Date(sinceSecs * 1_000).toISOString(),
    ...(others.length > 0 && { with_other_payees: named(others) }),
  };
}

function named(gone: readonly GoneListing[]): string {
  const names = gone.slice(0, mostNamed).map(({ job }) => job);
  const more = gone.length - names.length;
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ');
}
