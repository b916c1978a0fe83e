import type { Ledger } from '../../ledger/store/ledger.ts';
import type pg from 'pg';
import { readStream } from '../../ledger/store/streams.ts';

/** Also in `tollbook.quotes_revoked_before`: the last event's time decides, and it never goes back. */
const revocationStream = 'operator:quotes';

/** Until when quotes are revoked, 0 for none, with the version of the stream that says so and the database's time: Unix seconds. */
export async function readRevocation(
  pool: pg.Pool,
): Promise<{ readonly version: number; readonly beforeSecs: number; readonly nowSecs: number }> {
  const { events, nowSecs } = await readStream(pool, revocationStream);
  const last = events.findLast((event) => event.type === 'operator_quotes_revoked');
  return { version: events.length, beforeSecs: last?.data.before ?? 0, nowSecs };
}

export type Revocation =
  | { readonly kind: 'revoked' }
  /** The same or a later time was named before. */
  | { readonly kind: 'revoked_before'; readonly beforeSecs: number }
  | { readonly kind: 'in_future' };

/**
 * Ends every quote that was issued before a time, in all gateways: the append that starts a payment compares its quote with the
 * event. Started payments continue.
 */
export async function revokeQuotes(
  { pool, lane }: Pick<Ledger, 'pool' | 'lane'>,
  { beforeSecs, operator }: { readonly beforeSecs: number; readonly operator: string },
): Promise<Revocation> {
  for (;;) {
    const { version, beforeSecs: present, nowSecs } = await readRevocation(pool);
    if (beforeSecs > nowSecs) return { kind: 'in_future' };
    if (present >= beforeSecs) return { kind: 'revoked_before', beforeSecs: present };
    const { outcome } = await lane.append({
      stream: revocationStream,
      expect: version,
      events: [{ type: 'operator_quotes_revoked', data: { before: beforeSecs, operator } }],
    });
    if (outcome === 'ok') return { kind: 'revoked' };
  }
}
