import type pg from 'pg';
import { pause } from '../../../base/runtime/pause.ts';
import { readGatewayHeartbeats } from '../../../ledger/store/processes.ts';

/** A gateway sends a heartbeat a second; one that fails after 5 seconds is repeated once. */
const longestGapMs = 12_000;
const pollMs = 200;

/**
 * Whether a live gateway runs on this database: one of its heartbeats arrives while this waits, whatever the clock does. False immediately
 * if all gateways have ended in order; after 12 seconds if one was killed, or the database is a copy of one with gateways.
 */
export async function doesGatewayRun(pool: pg.Pool, gapMs = longestGapMs): Promise<boolean> {
  const deadlineMs = performance.now() + gapMs;
  const before = await readGatewayHeartbeats(pool);
  let present = before;
  while (present.size > 0 && performance.now() < deadlineMs) {
    await pause(pollMs);
    present = await readGatewayHeartbeats(pool);
    for (const [process, at] of present) if (before.get(process) !== at) return true;
  }
  return false;
}
