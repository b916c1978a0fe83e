import type pg from 'pg';
import {
  compareIdentities,
  type DatabaseIdentity,
  identityText,
} from '../../../base/values/database-identity.ts';
import { type AnchorComparison, differenceText, placeOf } from '../../../audit/use-cases/log/anchors.ts';
import { pause } from '../../../base/runtime/pause.ts';
import {
  type Proof,
  readIdentity,
  readRecordedIdentity,
  type RecordedIdentity,
  recordFirstIdentity,
} from '../../../ledger/store/database-identity.ts';
import { readGatewayHeartbeats } from '../../../ledger/store/processes.ts';
import { readHalt } from '../../../ledger/store/recovery.ts';

/** How a gateway starts on its database. */
export type StartDecision =
  | {
      readonly kind: 'live';
      readonly database: DatabaseIdentity;
      /** To be recorded once the ledger can be appended to: the timeline is another one, and nothing is missing. */
      readonly continued?: { readonly recorded: RecordedIdentity; readonly proof: Proof };
    }
  /** The database may be a copy of the ledger: reads alone, and no request to anyone. */
  | { readonly kind: 'quiet'; readonly reason: string };

export interface StartQuestion {
  readonly pool: pg.Pool;
  /** Compares the database with its anchors. Asked only if the timeline alone is another one. */
  readonly compareAnchors: () => Promise<readonly AnchorComparison[]>;
  /** How long running gateways have to record a failover that just happened. */
  readonly patienceMs?: number;
}

const pollMs = 200;

/**
 * The one rule. Live: if the database is the one on record; at the first start; and where only PostgreSQL's timeline is another
 * one and it is proven that no event is missing, by a gateway that ran before and still runs, or by an anchor. Else quiet.
 */
export async function decideStart({
  pool,
  compareAnchors,
  patienceMs = 10_000,
}: StartQuestion): Promise<StartDecision> {
  const database = await readIdentity(pool);
  const deadlineMs = performance.now() + patienceMs;
  for (;;) {
    const recorded = await readRecordedIdentity(pool);
    if (!recorded) {
      await recordFirstIdentity(pool, database);
      return { kind: 'live', database };
    }
    const compared = compareIdentities(recorded.database, database);
    if (compared === 'same') return { kind: 'live', database };
    if (compared === 'other_database')
      return quiet(recorded, database, 'this is a copy, or the ledger was moved');
    // the start itself refuses a halted ledger, with its reason
    if (await readHalt(pool)) return { kind: 'live', database };
    // a gateway that has gone on through the failover records it within seconds; one that was killed leaves its last heartbeat
    const isAwaited = performance.now() < deadlineMs && (await readGatewayHeartbeats(pool)).size > 0;
    if (!isAwaited) return byAnchors(recorded, database, await compareAnchors());
    await pause(pollMs);
  }
}

function byAnchors(
  recorded: RecordedIdentity,
  database: DatabaseIdentity,
  compared: readonly AnchorComparison[],
): StartDecision {
  const different = compared.find((one) => one.kind === 'ahead' || one.kind === 'other_history');
  if (different) return quiet(recorded, database, differenceText(different));
  const sizes = compared.flatMap((one) => (one.kind === 'same' ? one.head.size : []));
  const anchoredSize = Math.max(0, ...sizes);
  if (anchoredSize > 0) {
    const proof: Proof = { proven_by: 'anchor', anchored_size: anchoredSize };
    return { kind: 'live', database, continued: { recorded, proof } };
  }
  const why =
    compared.length === 0
      ? 'no anchor is configured'
      : `no anchor has a checkpoint that can be read: ${compared.map(({ anchor }) => placeOf(anchor)).join(', ')}`;
  return quiet(recorded, database, `nothing proves that no event is missing: no gateway runs, and ${why}`);
}

function quiet(recorded: RecordedIdentity, database: DatabaseIdentity, why: string): StartDecision {
  const reason = `this database has ${identityText(database)}, and on record is ${identityText(recorded.database)}: ${why}`;
  return { kind: 'quiet', reason };
}
