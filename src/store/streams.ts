import { sql } from 'kysely';
import { decodeLeaf, type RecordedEvent } from '../domain/event.ts';
import type { Fingerprint } from '../domain/payment.ts';
import type { Claim } from './append-batch.ts';
import type { LedgerDatabase } from './database.ts';

export interface StreamReading {
  readonly events: readonly RecordedEvent[];
  /** The database's clock at the moment of reading, in Unix seconds. */
  readonly nowSecs: number;
}

/** A stream from its beginning, with the time it was read at. An unknown stream has no events. */
export async function readStream(db: LedgerDatabase, stream: string): Promise<StreamReading> {
  const rows = await db
    .selectFrom(
      sql<{ now: number }>`(select extract(epoch from tollbook.clock())::float8 as now)`.as('clock'),
    )
    .leftJoin('tollbook.event', (join) => join.on('tollbook.event.stream', '=', stream))
    .select(['tollbook.event.leaf', 'clock.now'])
    .orderBy('tollbook.event.version')
    .execute();
  return {
    events: rows.flatMap(({ leaf }) => (leaf ? [decodeLeaf(leaf)] : [])),
    nowSecs: Math.floor(rows[0]?.now ?? 0),
  };
}

/** Events of all streams after a place in the ledger, in order. */
export async function readEvents(
  db: LedgerDatabase,
  afterSeq: number,
  limit: number,
): Promise<RecordedEvent[]> {
  const rows = await db
    .selectFrom('tollbook.event')
    .select('leaf')
    .where('lane_id', '=', 1)
    .where('seq', '>', afterSeq)
    .orderBy('seq')
    .limit(limit)
    .execute();
  return rows.map(({ leaf }) => decodeLeaf(leaf));
}

/** A payment's place among the claims: chain, method and asset name the scope, payer and nonce the payment in it. */
export function paymentClaim(payment: Fingerprint, binding: string): Claim {
  const { network, transferMethod, asset, payer, nonce } = payment;
  return {
    kind: 'payment',
    owner: payer,
    scope: `${network}/${transferMethod}/${asset}`,
    key: nonce,
    binding,
  };
}

/** The stream that a payment was claimed by; undefined for a payment never seen. */
export async function findPaymentStream(
  db: LedgerDatabase,
  payment: Fingerprint,
): Promise<string | undefined> {
  const { kind, owner, scope, key } = paymentClaim(payment, '');
  const row = await db
    .selectFrom('tollbook.claim')
    .select('stream')
    .where('kind', '=', kind)
    .where('owner', '=', owner)
    .where('scope', '=', scope)
    .where('key', '=', key)
    .executeTakeFirst();
  return row?.stream;
}
