/** Why a look at a discovery service proves nothing about unlisted jobs. */
export type LookProblem =
  | 'unreachable'
  | 'timeout'
  /** A page is longer than is read, or has too many values. */
  | 'too_large'
  | 'malformed'
  | `status_${number}`
  /** The list is longer than the pages, or the time, that a look has. */
  | 'too_many_pages'
  | 'too_slow'
  | 'repeated_page'
  /** The list ended before its own total. */
  | 'incomplete'
  /** It lists no job of any gateway. */
  | 'empty';

/** The findings of one look at a discovery service. Any page proves that a job is listed; only the whole list proves that it is not. */
export type Look = {
  /** The keys of our jobs that are listed with one of our payees. */
  readonly listed: ReadonlySet<string>;
  /** Of those that are not: listed only with payees of others. */
  readonly otherPayee: ReadonlySet<string>;
} & ({ readonly kind: 'conclusive' } | { readonly kind: 'unknown'; readonly problem: LookProblem });

/** A job that a discovery service listed at some time. */
export interface KnownListing {
  /** As `listingKey` makes it. */
  readonly key: string;
  /** Unix seconds, like all times here: of the last look that found it. */
  readonly listedAtSecs: number;
  /** Of the last look by a gateway that sells it. */
  readonly soldAtSecs: number;
  /** The conclusive looks since then that did not find it, and the first of them. */
  readonly misses: number;
  readonly missingSinceSecs?: number;
  readonly hasOtherPayee?: boolean;
}

/** What the looks at a discovery service have shown so far. */
export interface ListingState {
  readonly listings: readonly KnownListing[];
  readonly lookedAtSecs?: number;
  /** The first of the last looks in a row that were not conclusive. */
  readonly unknownSinceSecs?: number;
  readonly problem?: LookProblem;
}

export const noLook: ListingState = { listings: [] };

/** A job that no gateway sells any more is forgotten after a week: in an upgrade gateways may sell different ones. */
const forgetAfterSecs = 7 * 86_400;
/** More than a gateway watches, so that the listings of two configurations have room. */
const mostKnown = 2_000;
/** A single look may miss an entry that moves from page to page meanwhile. */
const missesOfGone = 2;

/** The same text for every way to write a job's address: discovery services change case, and cut queries and slashes off. */
export function listingKey(address: string): string | undefined {
  if (address.length > 2_048 || !URL.canParse(address)) return undefined;
  const { protocol, host, pathname } = new URL(address);
  return protocol === 'https:' || protocol === 'http:'
    ? `${protocol}//${host}${pathname.replace(/\/+$/, '')}`
    : undefined;
}

/** @param sold the keys of the jobs that this gateway sells and permits to be listed */
export function afterLook(
  { listings, unknownSinceSecs }: ListingState,
  sold: ReadonlySet<string>,
  look: Look,
  nowSecs: number,
): ListingState {
  const known = new Map(listings.map((listing) => [listing.key, listing]));
  const next = [...new Set([...known.keys(), ...look.listed])].flatMap((key): KnownListing[] => {
    const before = known.get(key);
    const soldAtSecs = sold.has(key) ? nowSecs : (before?.soldAtSecs ?? nowSecs);
    if (nowSecs - soldAtSecs > forgetAfterSecs) return [];
    if (!before || look.listed.has(key)) return [{ key, listedAtSecs: nowSecs, soldAtSecs, misses: 0 }];
    if (look.kind === 'unknown') return [{ ...before, soldAtSecs }];
    return [
      {
        key,
        listedAtSecs: before.listedAtSecs,
        soldAtSecs,
        misses: before.misses + 1,
        missingSinceSecs: before.missingSinceSecs ?? nowSecs,
        ...(look.otherPayee.has(key) && { hasOtherPayee: true }),
      },
    ];
  });
  const kept = next.toSorted((a, b) => b.soldAtSecs - a.soldAtSecs).slice(0, mostKnown);
  return {
    listings: kept,
    lookedAtSecs: nowSecs,
    ...(look.kind === 'unknown' && {
      unknownSinceSecs: unknownSinceSecs ?? nowSecs,
      problem: look.problem,
    }),
  };
}

/** `gone`: two conclusive looks did not find it, the first of them longer than the grace ago. `missed`: not yet for this long. */
export type ListingVerdict = 'listed' | 'missed' | 'gone' | 'never_listed';

export function judgeListing(
  listing: KnownListing | undefined,
  graceSecs: number,
  nowSecs: number,
): ListingVerdict {
  if (!listing) return 'never_listed';
  const { misses, missingSinceSecs } = listing;
  if (missingSinceSecs === undefined) return 'listed';
  return misses >= missesOfGone && nowSecs - missingSinceSecs >= graceSecs ? 'gone' : 'missed';
}
