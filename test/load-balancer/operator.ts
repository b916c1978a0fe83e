import { setTimeout as sleep } from 'node:timers/promises';
import { discardCall } from '../../src/calls/use-cases/discard-call.ts';
import { resumeRunner } from '../../src/calls/use-cases/pause-runner.ts';
import { openDatabase, openPool } from '../../src/ledger/store/database.ts';
import { openLane } from '../../src/ledger/store/lane.ts';
import { openCalls, waitUntilIdle } from '../chaos/idle.ts';
import { openAccount } from '../chaos/prepare-credit.ts';
import type { Records } from '../chaos/records.ts';
import { withOwner } from '../chaos/with-owner.ts';
import { type Participants, poisoned, poisonRunner } from './participants.ts';

const grantMicros = 10_000_000_000n;
/** Far longer than any call waits for a runner that works. */
const staleSecs = 3_600;
const idleMs = 60_000;

/** The calls of the service without a runner look as if they had waited for an hour. */
export async function makeStale(databaseUrl: string, isOver: () => boolean): Promise<void> {
  await withOwner(databaseUrl, async (owner) => {
    while (!isOver()) {
      await owner.query(
        `update tollbook.call set created_at = created_at - make_interval(secs => $2), due_at = due_at - make_interval(secs => $2)
         where service_id = $1 and status = 'ready' and created_at > clock_timestamp() - make_interval(secs => $2)`,
        [poisoned.leased, staleSecs],
      );
      await sleep(200);
    }
  });
}

/** As an operator would: the runner is resumed and refuses its calls, the others are discarded. Returns what is still open. */
export async function endPoison({ poison }: Participants, databaseUrl: string): Promise<string[]> {
  poison.relent();
  return withOwner(databaseUrl, async (owner) =>
    withLedger(databaseUrl, async (ledger) => {
      await resumeRunner(ledger, { name: poisonRunner }, { operator: 'load-balancer-test' });
      const { rows } = await owner.query<{ call_id: string }>(
        `select call_id from tollbook.call where service_id = $1 and status = 'ready'`,
        [poisoned.leased],
      );
      const why = { why: 'no runner serves it', operator: 'load-balancer-test' };
      for (const { call_id: id } of rows) await discardCall(ledger, Number(id), why);
      return waitUntilIdle(
        () => openCalls(owner, []),
        idleMs,
        () => {},
      );
    }),
  );
}

/** Accounts with credit for a whole run. */
export async function openAccounts(databaseUrl: string, count: number, records: Records) {
  return withLedger(databaseUrl, (ledger) =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        openAccount(ledger, `chatter-${index}`, grantMicros, records),
      ),
    ),
  );
}

type Ledger = Parameters<typeof discardCall>[0];

async function withLedger<T>(url: string, use: (ledger: Ledger) => Promise<T>): Promise<T> {
  const pool = openPool({ url, maxConnections: 2 });
  const lane = openLane({ url });
  try {
    return await use({ pool, lane, db: openDatabase(pool) });
  } finally {
    await lane.close();
    await pool.end();
  }
}
