import type pg from 'pg';
import type { EventData } from '../rules/event.ts';
import { queriesOn } from './database.ts';
import { isOfStreams } from './expressions.ts';
import { activeGeneration } from './payments.ts';
import { decoded, leavesIn } from './streams.ts';

/** The last recovery of the ledger. */
export interface Recovery {
  readonly data: EventData<'ledger_recovered'>;
  /** RFC 3339, as recorded. */
  readonly at: string;
  /** The networks whose lost payments are all on record. */
  readonly searched: ReadonlySet<string>;
}

/** Undefined if the ledger never lost events. */
export async function readRecovery(pool: pg.Pool): Promise<Recovery | undefined> {
  const recoveries = leavesIn(queriesOn(pool)).where(isOfStreams('recovery:'));
  const events = await decoded(recoveries.orderBy('seq'));
  const last = events.findLast((event) => event.type === 'ledger_recovered');
  if (!last) return undefined;
  const searched = events.flatMap(({ type, stream, data }) =>
    type === 'network_searched' && stream === last.stream ? data.network : [],
  );
  return { data: last.data, at: last.at, searched: new Set(searched) };
}

/** A halt that a gateway recorded when it noticed that events are lost. */
export interface RecordedHalt {
  /** A sentence without a full stop. */
  readonly reason: string;
  /** The last event that the gateway knew to be recorded, and the last of the database when it noticed. */
  readonly knownSeq: number | undefined;
  readonly foundSeq: number | undefined;
}

/** Undefined if the ledger is not halted. */
export async function readHalt(pool: pg.Pool): Promise<RecordedHalt | undefined> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.lane')
    .select(['halt_reason', 'halt_known_seq', 'halt_found_seq'])
    .where('lane_id', '=', 1)
    .executeTakeFirst();
  if (!row || row.halt_reason === null) return undefined;
  const { halt_reason: reason, halt_known_seq: knownSeq, halt_found_seq: foundSeq } = row;
  return { reason, knownSeq: knownSeq ?? undefined, foundSeq: foundSeq ?? undefined };
}

/** The time of an event in Unix seconds; undefined if there is none. */
export async function readTimeOf(pool: pg.Pool, seq: number): Promise<number | undefined> {
  const row = await queriesOn(pool)
    .selectFrom('tollbook.event')
    .select('at')
    .where('lane_id', '=', 1)
    .where('seq', '=', seq)
    .executeTakeFirst();
  return row && Math.floor(row.at.getTime() / 1_000);
}

/** Every token and payee of the payments on record. */
export async function listPaidAccounts(pool: pg.Pool) {
  const db = queriesOn(pool);
  return db
    .selectFrom('tollbook.payee')
    .select(['network', 'asset', 'pay_to', 'symbol', 'decimals'])
    .where('generation', '=', activeGeneration(db))
    .execute();
}
