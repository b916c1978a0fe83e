import type pg from 'pg';
import { dueFirings } from '../../../base/values/triggers/due-firings.ts';
import { type CronTerms, cronTermsHash } from '../../../base/values/triggers/trigger-terms.ts';
import type { OperatorLog } from '../../../base/values/operator-log.ts';
import { beginCronLook, endCronLook } from '../../../calls/store/trigger-cursors.ts';
import type { Fire, FiringCounts } from './fire.ts';

/** A trigger that fires at the times of a schedule. */
export interface CronTrigger {
  readonly name: string;
  readonly terms: CronTerms;
}

export interface ScheduleContext {
  readonly pool: pg.Pool;
  readonly log: Pick<OperatorLog, 'warn'>;
  readonly counts: FiringCounts;
}

/** Where the ledger takes no further call, its next look. */
const fullMs = 1_000;

/**
 * Fires the times of a schedule that are due, by the database's clock. Gateways may do so simultaneously: a time makes one call, whichever
 * process records it first. Returns in how many milliseconds the next time comes; infinite if none does.
 */
export async function fireSchedule(
  context: ScheduleContext,
  trigger: CronTrigger,
  fire: Fire,
): Promise<number> {
  const { pool, log, counts } = context;
  const { name, terms } = trigger;
  const cursor = { trigger: name, terms: cronTermsHash(terms) };
  const begun = await beginCronLook(pool, cursor);
  const { fromMs, nowMs } = begun;
  const { times, skipped, untilMs } = dueFirings(terms.schedule, terms, fromMs, nowMs);
  // the times that do not fire are all older than those that do
  const moveTo = async (handledMs: number): Promise<void> => {
    if (!(await endCronLook(pool, cursor, begun, handledMs)) || skipped === 0 || handledMs === fromMs) return;
    counts.add(name, 'skipped', skipped);
    const what = { trigger: name, times: skipped, missed: terms.missed };
    log.warn(what, 'times of a trigger were missed and do not fire');
  };
  let firedMs = fromMs;
  for (const timeMs of times) {
    const answer = await fire(firingAt(name, timeMs));
    counts.add(name, answer);
    if (answer === 'full') {
      await moveTo(firedMs);
      return fullMs;
    }
    firedMs = timeMs;
  }
  // if nothing was due, the same look from the same place finds nothing either
  await moveTo(times.length > 0 || skipped > 0 ? untilMs : fromMs);
  if (untilMs < nowMs) return 0;
  return (terms.schedule.next(nowMs) ?? Infinity) - nowMs;
}

/** The same for every process: whole seconds, in UTC. */
function firingAt(trigger: string, timeMs: number): { readonly id: string; readonly body: string } {
  const id = `${new Date(timeMs).toISOString().slice(0, 19)}Z`;
  return { id, body: JSON.stringify({ trigger, scheduled_at: id }) };
}
