import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';

/** What keeps a run from being quiet, in words; empty when nothing moves any more. */
export type Unrest = () => Promise<string[]>;

const lookEveryMs = 100;

/** Waits until nothing is left to do, and returns what is left when the patience is over. */
export async function waitForQuiet(
  unrest: Unrest,
  patienceMs: number,
  remark: (words: string) => void,
): Promise<string[]> {
  const deadline = performance.now() + patienceMs;
  for (let before = ''; ;) {
    const left = await unrest();
    const words =
      left.length === 0
        ? 'it is quiet'
        : `waiting: ${left.slice(0, 4).join(', ')}${left.length > 4 ? `, ${left.length} in all` : ''}`;
    if (words !== before) remark(words);
    before = words;
    if (left.length === 0 || performance.now() > deadline) return left;
    await sleep(lookEveryMs);
  }
}

/**
 * Calls that are neither finished nor dead: each is somebody's money, or might be. A payment that failed is only watched,
 * and nothing is left to do for it, unless it landed all the same.
 */
export async function openCalls(owner: pg.Client, landedNonces: readonly string[]): Promise<string[]> {
  const { rows } = await owner.query<{ call_id: string; status: string; stream: string; attempt: number }>(
    `select call_id, status, stream, attempt from tollbook.call
     where status in ('held', 'ready', 'leased') or status = 'watched' and exists (
       select from unnest($1::text[]) as landed(nonce) where position(landed.nonce in call.payment) > 0)
     order by call_id`,
    [landedNonces],
  );
  return rows.map(
    ({ call_id, status, stream, attempt }) => `call ${call_id} of ${stream} is ${status}, attempt ${attempt}`,
  );
}

/**
 * Moves the only clock that decides anything, so that leases of the dead and graces of the departed end now instead of
 * being waited for.
 */
export async function moveClock(owner: pg.Client, seconds: number): Promise<void> {
  await owner.query(
    `create or replace function tollbook.clock() returns timestamptz language sql volatile
     as $$ select clock_timestamp() + interval '${seconds} seconds' $$`,
  );
}
