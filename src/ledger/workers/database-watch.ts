import type pg from 'pg';
import { compareIdentities, identityText } from '../../base/values/database-identity.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import {
  readIdentity,
  readRecordedIdentity,
  readTimeline,
  recordContinuation,
} from '../store/database-identity.ts';
import type { LedgerWriter } from '../store/ledger.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;
const quietPollMs = 2_000;

/**
 * Records a failover that this process has gone on through, so that gateways which start after it are live. The append is the
 * proof: a database that lacks this process's events does not take it.
 */
export function startDatabaseWatch({ pool, lane, log }: LedgerWriter & { readonly log: OperatorLog }): Loop {
  let known: number | undefined;
  return startLoop(
    async () => {
      const timeline = await readTimeline(pool);
      if (timeline === undefined || timeline === known) return false;
      const database = await readIdentity(pool);
      const recorded = await readRecordedIdentity(pool);
      const compared = recorded ? compareIdentities(recorded.database, database) : 'same';
      if (recorded && compared === 'other_timeline') {
        await recordContinuation(lane, recorded, database, { proven_by: 'running_gateway' });
        log.info({ timeline: database.timeline }, 'the database has failed over, and lacks nothing');
        return true;
      }
      if (recorded && compared === 'other_database')
        log.warn(
          { found: identityText(database), on_record: identityText(recorded.database) },
          'the database is not the one on record: gateways that start on it are quiet',
        );
      known = database.timeline;
      return false;
    },
    { pollMs, log, failureMessage: 'the identity of the database could not be read' },
  );
}

/** Tells a quiet gateway that its database is the ledger now. */
export function startQuietWatch(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  onLive: () => void,
): Loop {
  return startLoop(
    async () => {
      const recorded = await readRecordedIdentity(pool);
      if (recorded && compareIdentities(recorded.database, await readIdentity(pool)) === 'same') onLive();
    },
    { pollMs: quietPollMs, log, failureMessage: 'the identity of the database could not be read' },
  );
}
