import type pg from 'pg';
import { type ListingState, noLook } from '../../base/values/discovery/listing.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { callFunction, callTableFunction } from '../../ledger/store/functions.ts';

export interface BegunLook {
  readonly look: number;
  readonly state: ListingState;
}

/** Begins the next look at a discovery service; undefined where it is not due, or another gateway looks. */
export async function beginListingLook(
  pool: pg.Pool,
  url: string,
  leaseMs: number,
): Promise<BegunLook | undefined> {
  const [row] = await callTableFunction(pool, 'begin_listing_look', [url, leaseMs]);
  return row && { look: row.look, state: row.state as ListingState };
}

/** Ends a look. False where another gateway has begun the next one. */
export function endListingLook(
  pool: pg.Pool,
  url: string,
  { look, state, dueMs }: BegunLook & { readonly dueMs: number },
): Promise<boolean> {
  return callFunction(pool, 'end_listing_look', [url, look, dueMs, state]);
}

export interface ReadLook {
  /** When the next look may begin, in Unix seconds. */
  readonly dueAtSecs: number;
  readonly state: ListingState;
}

/** What the looks at a discovery service have shown. */
export async function readListingLook(pool: pg.Pool, url: string): Promise<ReadLook> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.listing_look')
    .select(['due_at', 'state'])
    .where('url', '=', url)
    .executeTakeFirst();
  if (!row) return { dueAtSecs: 0, state: noLook };
  // written by `endListingLook`
  return { dueAtSecs: row.due_at.getTime() / 1_000, state: row.state as ListingState };
}
