import { readRevocation, revocationStream } from '../store/quote-revocations.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

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
