import pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../domain/event.ts';
import type { LedgerDatabase } from './database.ts';

type FollowUpTopic = 'confirm' | 'alert';

/** A settlement that is not known to be final. */
export interface Confirmation {
  /** Of the event that settled or confirmed it. */
  readonly seq: number;
  readonly stream: string;
  /** Where it stands on the chain; undefined while only somebody's word says so. */
  readonly block: { readonly number: bigint; readonly hash: string } | undefined;
  readonly ageSecs: number;
}

interface ConfirmationRow {
  seq: number;
  stream: string;
  block_number: string | null;
  block_hash: string | null;
  age_secs: number;
}

/**
 * Looks through up to `max` events that no process has looked through, and notes the settlements on these networks and
 * what the operator must hear of. Returns how many events that were. The statements here are simple-protocol messages:
 * they lock rows, and a client that vanishes must not keep them.
 */
export async function collectFollowUps(
  pool: pg.Pool,
  networks: readonly string[],
  max: number,
): Promise<number> {
  const list = networks.map((network) => pg.escapeLiteral(network)).join(',');
  const { rows } = await pool.query<{ read: number }>(
    `select tollbook.collect_follow_ups(array[${list}]::text[], ${Math.trunc(max)}) as read`,
  );
  return rows[0]?.read ?? 0;
}

/** Takes up to `max` settlements of a network to look at, as far as its chain is final. */
export async function takeConfirmations(
  pool: pg.Pool,
  network: string,
  finalized: bigint,
  max: number,
): Promise<Confirmation[]> {
  const { rows } = await pool.query<ConfirmationRow>(
    `select * from tollbook.take_confirmations(${pg.escapeLiteral(network)}, ${finalized}, ${Math.trunc(max)})`,
  );
  return rows.map(({ seq, stream, block_number, block_hash, age_secs }) => ({
    seq,
    stream,
    block:
      block_number === null || block_hash === null
        ? undefined
        : { number: BigInt(block_number), hash: block_hash },
    ageSecs: age_secs,
  }));
}

/** Takes up to `max` events that an operator must hear of. */
export async function takeAlerts(pool: pg.Pool, db: LedgerDatabase, max: number): Promise<RecordedEvent[]> {
  const { rows } = await pool.query<{ seq: number }>(
    `select seq from tollbook.take_alerts(${Math.trunc(max)})`,
  );
  if (rows.length === 0) return [];
  const found = await db
    .selectFrom('tollbook.event')
    .select('leaf')
    .where('lane_id', '=', 1)
    .where(
      'seq',
      'in',
      rows.map(({ seq }) => seq),
    )
    .orderBy('seq')
    .execute();
  return found.map(({ leaf }) => decodeLeaf(leaf));
}

/** Done with: nobody needs to look at these again. */
export async function endFollowUps(
  pool: pg.Pool,
  topic: FollowUpTopic,
  seqs: readonly number[],
): Promise<void> {
  if (seqs.length === 0) return;
  const list = seqs.map(Math.trunc).join(',');
  await pool.query(`select tollbook.end_follow_ups(${pg.escapeLiteral(topic)}, '{${list}}')`);
}
