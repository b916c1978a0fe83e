import type pg from 'pg';
import { paymentRowsOf } from '../projections/read-model.ts';
import { readStreamsUpTo } from '../store/projection.ts';
import { findStreamsThatMayOwe, readStoredDues } from '../store/refunds.ts';
import { withStoredRows } from '../store/stored-rows.ts';

const streamsAtOnce = 1_000;

/**
 * Payments for which a refund is due by the events, and for which the read model has none, another reason or another time, so that no list
 * has them, by the events that started them. Reads the types of all events, and whole streams where a refund may be due.
 */
export function findUnlistedRefunds(pool: pg.Pool): Promise<number[]> {
  return withStoredRows(pool, async (snapshot) => {
    const streams = await findStreamsThatMayOwe(snapshot);
    const unlisted: number[] = [];
    for (let at = 0; at < streams.length; at += streamsAtOnce) {
      const read = await readStreamsUpTo(
        snapshot.client,
        streams.slice(at, at + streamsAtOnce),
        snapshot.seq,
      );
      const due = read
        .flatMap((events) => paymentRowsOf(events).payments)
        .filter(({ refund_due: why }) => why !== null);
      const stored = await readStoredDues(
        snapshot,
        due.map(({ seq }) => seq),
      );
      for (const { seq, refund_due: why, refund_due_since: since } of due)
        if (stored.get(seq)?.why !== why || stored.get(seq)?.since !== since) unlisted.push(seq);
    }
    return unlisted.toSorted((a, b) => a - b);
  });
}
