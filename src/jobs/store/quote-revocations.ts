import type pg from 'pg';
import { readStream } from '../../ledger/store/streams.ts';

/** Also in `tollbook.quotes_revoked_before`: the last event's time decides, and it never goes back. */
export const revocationStream = 'operator:quotes';

/** Until when quotes are revoked, 0 for none, with the version of the stream that says so and the database's time: Unix seconds. */
export async function readRevocation(
  pool: pg.Pool,
): Promise<{ readonly version: number; readonly beforeSecs: number; readonly nowSecs: number }> {
  const { events, nowSecs } = await readStream(pool, revocationStream);
  const last = events.findLast((event) => event.type === 'operator_quotes_revoked');
  return { version: events.length, beforeSecs: last?.data.before ?? 0, nowSecs };
}
