import type pg from 'pg';
import { readDatabaseUrl } from '../../base/config/database-url.ts';
import { processEnvironment } from '../../base/config/environment.ts';
import { isMissingTable, type LedgerDatabase, openDatabase, openPool } from '../store/database.ts';
import { grantedWriterRole, mayAppend } from '../store/writer-role.ts';
import { type Lane, openLane, overlayLane } from '../store/lane.ts';

/** Opens the ledger that DATABASE_URL names, for one command. The message of an error never contains the URL. */
export async function withLedger<T>(
  use: (ledger: { pool: pg.Pool; db: LedgerDatabase; lane: Lane }) => Promise<T>,
): Promise<T> {
  const url = await readDatabaseUrl(processEnvironment());
  const role = await grantedWriterRole(url).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `the database that DATABASE_URL names cannot be used: ${reason}. Nothing was done: check the URL, and that its server runs`,
      { cause },
    );
  });
  const pool = openPool({ url, role, maxConnections: 2 });
  const lane = openLane({ url, role, flushers: 1 });
  try {
    return await use({ pool, db: openDatabase(pool), lane: forWriters(lane, pool) });
  } catch (error) {
    if (!isMissingTable(error)) throw error;
    throw new Error(
      `the database that DATABASE_URL names has no ledger, or an older one: ${error.message}. Check the URL; its owner runs \`tollbook migrate\``,
      { cause: error },
    );
  } finally {
    await lane.close();
    await pool.end();
  }
}

/** A lane that refuses to append for a user who may only read: the lane itself would wait until the database accepts it. */
function forWriters(lane: Lane, pool: pg.Pool): Lane {
  let known: Promise<boolean> | undefined;
  const requireWriter = async (): Promise<void> => {
    known ??= mayAppend(pool);
    if (!(await known))
      throw new Error(
        'nothing was recorded: the user of DATABASE_URL may only read the ledger, and recording needs the gateway role (docs/operations/roles.md)',
      );
  };
  return overlayLane(lane, {
    append: async (command, options) => {
      await requireWriter();
      return lane.append(command, options);
    },
    appendCredit: async (command, options) => {
      await requireWriter();
      return lane.appendCredit(command, options);
    },
  });
}
