import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { withOwner } from './sql.ts';

/** Descriptions of the work that is left; empty if there is none. */
export type ListOpenWork = () => Promise<string[]>;

const pollMs = 100;
/** Whether a payment of these nonces ($1) was started for a call. Calls name their payment by a hash, the events by its fields. */
const isPaidByOneOf = `exists (
  select from tollbook.event cross join unnest($1::text[]) as one(nonce)
  where event.stream = tollbook.stream_key(call.stream) and event.type = 'settlement_started' and position(one.nonce in event.data) > 0)`;

/** Waits until no work is left, and returns what is left after the time-out. */
export async function waitUntilIdle(
  listOpenWork: ListOpenWork,
  timeoutMs: number,
  trace: (text: string) => void,
): Promise<string[]> {
  const deadline = performance.now() + timeoutMs;
  for (let before = ''; ;) {
    const left = await listOpenWork();
    const words =
      left.length === 0
        ? 'idle'
        : `waiting: ${left.slice(0, 4).join(', ')}${left.length > 4 ? `, ${left.length} in all` : ''}`;
    if (words !== before) trace(words);
    before = words;
    if (left.length === 0 || performance.now() > deadline) return left;
    await sleep(pollMs);
  }
}

/** Waits until no call is open, and returns what is left after the time-out. No payment of the ledger is contested. */
export function waitForCalls(url: string, timeoutMs: number): Promise<string[]> {
  const open = () =>
    withOwner(url, (owner) => openCalls(owner, [])).catch((error: unknown) => [
      `the ledger cannot be read: ${String(error)}`,
    ]);
  return waitUntilIdle(open, timeoutMs, () => {});
}

/**
 * Calls that are neither finished nor dead. A watched call counts only when its payment landed although it was reported as
 * failed.
 */
export async function openCalls(owner: pg.Client, landedNonces: readonly string[]): Promise<string[]> {
  const { rows } = await owner.query<{ call_id: string; status: string; stream: string; attempt: number }>(
    `select call_id, status, stream, attempt from tollbook.call
     where status in ('pending', 'ready', 'leased', 'unpaid') or status = 'watched' and ${isPaidByOneOf}
     order by call_id`,
    [landedNonces],
  );
  return rows.map(
    ({ call_id, status, stream, attempt }) => `call ${call_id} of ${stream} is ${status}, attempt ${attempt}`,
  );
}

/** Settlements that no final block has proven yet: a reorg may still have removed their transfers. */
export async function openConfirmations(owner: pg.Client): Promise<string[]> {
  const { rows } = await owner.query<{ stream: string }>(
    `select tollbook.stream_name(event.stream) as stream from tollbook.follow_up
     join tollbook.event on event.lane_id = 1 and event.seq = follow_up.seq
     where topic in ('confirm', 'resolve') order by event.seq`,
  );
  return rows.map(({ stream }) => `the settlement of ${stream} is not final`);
}

/** Makes the calls of failed payments due that landed late: their next check is up to two minutes away. */
export async function hurryWatched(owner: pg.Client, landedNonces: readonly string[]): Promise<void> {
  await owner.query(
    `update tollbook.call set due_at = tollbook.clock() where status = 'watched' and due_at > tollbook.clock()
       and ${isPaidByOneOf}`,
    [landedNonces],
  );
}

/**
 * After a clock was wrong, gateways pull due times back once a minute, and look once a minute after calls that seem old. A run
 * does not wait for that.
 */
export async function pullDueTimes(owner: pg.Client): Promise<void> {
  await owner.query(`select tollbook.pull_due_times(500)`);
  // as if it had been open since the clock was behind
  await owner.query(
    `update tollbook.call set due_at = tollbook.clock(), created_at = tollbook.clock()
     where status in ('pending', 'watched') and created_at < tollbook.clock() - interval '15 minutes'`,
  );
}

/** Once all clients have ended, nothing repeats a paid request of a route: its time for that is over. */
export async function hurryRoutes(owner: pg.Client): Promise<void> {
  await owner.query(
    `update tollbook.call set enqueued_at = enqueued_at - interval '1 hour'
     where service_id = 7 and status in ('ready', 'leased') and enqueued_at > tollbook.clock() - interval '1 hour'`,
  );
}

/** Lets a call age, so that another gateway takes the first settle request for one whose sender died. */
export async function ageCall(owner: pg.Client, nonce: string): Promise<void> {
  await owner.query(
    `update tollbook.call set due_at = tollbook.clock(), created_at = least(created_at, tollbook.clock() - interval '30 seconds')
     where status = 'pending' and ${isPaidByOneOf}`,
    [[nonce]],
  );
}
