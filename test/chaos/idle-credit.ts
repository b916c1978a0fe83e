import type pg from 'pg';
import type { Clocks } from './clocks.ts';
import { withOwner } from './sql.ts';
import { pause, repeatUntil } from './until.ts';

/** Longer than between two heartbeats. */
const betweenStepsMs = 4_000;
const expireEveryMs = 400;

/** Holds, earned spends that are not paid out, and top-ups that are not credited, by the ledger's own tables. */
export async function openCredit(owner: pg.Client): Promise<string[]> {
  const { rows } = await owner.query<{ words: string }>(
    `select 'the hold of completion ' || chat_id || ' is open' || case when started_at is null then '' else ', its answer has begun' end
       as words from tollbook.chat_hold
     union all
     select 'the payout of ' || stream || ' is open' from (
       select tollbook.stream_name(stream) as stream from tollbook.event where type = 'spend_earned'
       except select tollbook.stream_name(stream) from tollbook.event where type in ('spend_paid_out', 'spend_failed')) as earned`,
  );
  return rows.map(({ words }) => words);
}

/**
 * Makes payouts and leased top-ups due: their leases outlive a dead process by minutes. A living one may be working on them; then two
 * processes do the same at once, which must be harmless.
 */
export async function hurryCredit(owner: pg.Client): Promise<void> {
  await owner.query(
    `update tollbook.payout set due_at = tollbook.clock() where status = 'open' and due_at > tollbook.clock()`,
  );
  await expireTopUpLeases(owner);
}

/** Another process may take the call of a top-up. */
async function expireTopUpLeases(owner: pg.Client): Promise<void> {
  await owner.query(
    `update tollbook.call set due_at = tollbook.clock()
     where service_id = 9 and status in ('ready', 'leased') and due_at > tollbook.clock()`,
  );
}

/** Leases of top-ups expire again and again while their holders work on. */
export function expireLeases(url: () => string, isOver: AbortSignal): Promise<void> {
  return repeatUntil(
    isOver,
    () => expireEveryMs,
    // a database that is away is asked again
    () => withOwner(url(), expireTopUpLeases).catch(() => {}),
  );
}

/**
 * The holds of a dead process are ended when it has been silent for long enough: the database's clock steps a second time. One step of
 * that length would look like a gap in the heartbeats of all processes.
 */
export async function endSilence(clocks: Clocks, stepSecs: number, isIdle: AbortSignal): Promise<void> {
  await pause(betweenStepsMs, isIdle);
  if (!isIdle.aborted) await clocks.setDatabase(2 * stepSecs);
}
