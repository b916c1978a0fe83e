import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultInjector } from './fault-injector.ts';
import type { ClockStep } from './schedule.ts';
import { withOwner } from './sql.ts';

/** The clocks of a run that can be set. */
export interface Clocks {
  /** Sets the database's clock ahead of, or behind, the machine's. */
  setDatabase(aheadSecs: number): Promise<void>;
  /**
   * Once the database's clock is right again: what was written while it was wrong is due now, and is not old. A run does not
   * wait for as long as the clock was wrong. What is written from now on stays as it is.
   */
  forgetWrongTimes(): Promise<void>;
  /** The same for a gateway, by its index. */
  setGateway(index: number, aheadSecs: number): void;
  /** The file that a gateway reads its clock from. */
  fileOf(index: number): string;
}

export function createClocks(url: () => string, fileOf: Clocks['fileOf']): Clocks {
  const run = (statement: string): Promise<void> =>
    withOwner(url(), async (owner) => void (await owner.query(statement)));
  return {
    fileOf,
    setDatabase: (aheadSecs) =>
      run(
        `create or replace function tollbook.clock() returns timestamptz language sql volatile
         as $$ select clock_timestamp() + interval '${aheadSecs} seconds' $$`,
      ),
    forgetWrongTimes: () =>
      run(
        `update tollbook.call set due_at = least(due_at, tollbook.clock()), created_at = tollbook.clock()
           where abs(extract(epoch from created_at - tollbook.clock())) > 120 or due_at > tollbook.clock() + interval '2 minutes';
         update tollbook.follow_up set due_at = least(due_at, tollbook.clock()), retry_at = null, created_at = tollbook.clock()
           where abs(extract(epoch from created_at - tollbook.clock())) > 120 or greatest(due_at, retry_at) > tollbook.clock() + interval '2 minutes'`,
      ),
    setGateway: (index, aheadSecs) => writeFileSync(fileOf(index), String(aheadSecs)),
  };
}

const retryEveryMs = 100;
/** An append that began before the clock was set is committed by then. */
const appendedMs = 200;

/** Steps a clock, and later steps it back. */
export async function stepClock(
  clocks: Clocks,
  { atMs, forMs, bySecs, of }: ClockStep,
  faults: FaultInjector,
): Promise<void> {
  const set = async (aheadSecs: number): Promise<void> =>
    of === 'database' ? retry(() => clocks.setDatabase(aheadSecs)) : clocks.setGateway(of, aheadSecs);
  await faults.pause(atMs);
  if (faults.over.aborted) return;
  const whose = of === 'database' ? 'the database' : `gateway ${of + 1}`;
  faults.count('clock step', `${whose} by ${bySecs} s, for ${forMs} ms`);
  await set(bySecs);
  await faults.pause(forMs);
  await set(0);
  if (of === 'database') {
    await sleep(appendedMs);
    await retry(() => clocks.forgetWrongTimes());
  }
  faults.trace(`the clock of ${whose} is right again`);
}

async function retry(act: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await act();
    } catch {
      // the database is unreachable
      await sleep(retryEveryMs);
    }
  }
}
