import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { FaultInjector } from './fault-injector.ts';
import type { ClockStep } from './schedule.ts';

/** The clocks of a run that can be set. */
export interface Clocks {
  /** Sets the database's clock ahead of, or behind, the machine's. */
  setDatabase(aheadSecs: number): Promise<void>;
  /** The same for a gateway, by its index. */
  setGateway(index: number, aheadSecs: number): void;
  /** The file that a gateway reads its clock from. */
  fileOf(index: number): string;
}

export function createClocks(url: () => string, fileOf: Clocks['fileOf']): Clocks {
  return {
    fileOf,
    async setDatabase(aheadSecs) {
      const owner = new pg.Client(url());
      owner.on('error', () => {});
      try {
        await owner.connect();
        await owner.query(
          `create or replace function tollbook.clock() returns timestamptz language sql volatile
           as $$ select clock_timestamp() + interval '${aheadSecs} seconds' $$`,
        );
      } finally {
        await owner.end().catch(() => {});
      }
    },
    setGateway: (index, aheadSecs) => writeFileSync(fileOf(index), String(aheadSecs)),
  };
}

const retryEveryMs = 100;

/** Steps a clock, and later steps it back. */
export async function stepClock(
  clocks: Clocks,
  { atMs, forMs, bySecs, of }: ClockStep,
  faults: FaultInjector,
): Promise<void> {
  const set = async (aheadSecs: number): Promise<void> => {
    if (of !== 'database') return clocks.setGateway(of, aheadSecs);
    for (;;) {
      try {
        return await clocks.setDatabase(aheadSecs);
      } catch {
        // the database is away
        await sleep(retryEveryMs);
      }
    }
  };
  await faults.pause(atMs);
  if (faults.over.aborted) return;
  const whose = of === 'database' ? 'the database' : `gateway ${of + 1}`;
  faults.count('clock step', `${whose} by ${bySecs} s, for ${forMs} ms`);
  await set(bySecs);
  await faults.pause(forMs);
  await set(0);
  faults.trace(`the clock of ${whose} is right again`);
}
