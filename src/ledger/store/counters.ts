import { type Counters, countersFrom } from '../rules/counters.ts';
import type { LedgerDatabase } from './database.ts';

/**
 * The public counters and their head, read in one statement so that they belong together. A type's count is the
 * sum of its rows: each batch inserts its own, until they are added up.
 */
export async function readCounters(db: LedgerDatabase): Promise<{ asOfSeq: number; counters: Counters }> {
  const rows = await db
    .selectFrom('tollbook.lane')
    .leftJoin('tollbook.lane_counter', 'tollbook.lane_counter.lane_id', 'tollbook.lane.lane_id')
    .select(['tollbook.lane.seq', 'tollbook.lane_counter.type', 'tollbook.lane_counter.count'])
    .execute();
  const countOf = new Map<string, number>();
  for (const { type, count } of rows) {
    if (type !== null && count !== null) countOf.set(type, (countOf.get(type) ?? 0) + count);
  }
  return { asOfSeq: rows[0]?.seq ?? 0, counters: countersFrom(countOf) };
}
