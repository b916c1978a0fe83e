import { setTimeout as sleep } from 'node:timers/promises';
import { projectNext } from '../src/audit/use-cases/projections/project.ts';
import { type SealOptions, sealNext } from '../src/audit/use-cases/log/seal.ts';
import { noteSigner } from '../src/base/values/log/checkpoint.ts';
import { openLane } from '../src/ledger/store/lane.ts';
import { readLogTip } from '../src/audit/store/log.ts';
import { readProjection } from '../src/ledger/store/projection.ts';
import { paidJob, type StreamEvent } from '../test/support/synthetic-ledger.ts';
import type { Ledger } from './ledger.ts';

/** The events of one paid job, in three appends. */
export const eventsAJob = 7;
export const signer = noteSigner('bench.example/log', [Buffer.alloc(32, 1)]);
/** The gateway's defaults. */
export const sealOptions: SealOptions = { everyMs: 1_000, everyEvents: 10_000 };
const projectedAtOnce = 5_000;
const projectEveryMs = 500;

export const secondsSince = (start: number): number => (performance.now() - start) / 1_000;

/** Appends paid jobs as a gateway does. Returns events per second. */
export async function loadJobs(
  { url }: Ledger,
  { first, count, inFlight }: { readonly first: number; readonly count: number; readonly inFlight: number },
): Promise<number> {
  const lane = openLane({ url });
  const start = performance.now();
  let next = first;
  const one = async (): Promise<void> => {
    while (next < first + count) {
      const told = paidJob(next++);
      for (const [from, to] of [
        [0, 3],
        [3, 5],
        [5, 7],
      ] as const)
        await lane.append(commandOf(told.slice(from, to)));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  await lane.close();
  return (count * eventsAJob) / secondsSince(start);
}

function commandOf(told: readonly StreamEvent[]) {
  return { stream: told[0]?.stream ?? '', events: told.map(({ event }) => event) };
}

/** Repeats a worker's step until `isOver`. Returns the largest number of events that it was behind, measured between steps. */
async function runBeside(
  step: () => Promise<boolean>,
  pauseMs: number,
  readBehind: () => Promise<number>,
  isOver: () => boolean,
): Promise<number> {
  let most = 0;
  while (!isOver()) {
    most = Math.max(most, await readBehind());
    if (!(await step())) await sleep(pauseMs);
  }
  return Math.max(most, await readBehind());
}

/** Seals while the lane appends, as a gateway does. Returns the largest number of unsealed events. */
export function sealBeside({ pool }: Ledger, isOver: () => boolean): Promise<number> {
  return runBeside(
    async () => (await sealNext(pool, signer, sealOptions)) === 'again',
    sealOptions.everyMs / 2,
    async () => {
      const { seq, size } = await readLogTip(pool, signer.name);
      return seq - size;
    },
    isOver,
  );
}

/** Updates the read models while the lane appends, as a gateway does. Returns the largest number of events they lagged behind. */
export function projectBeside({ pool }: Ledger, isOver: () => boolean): Promise<number> {
  return runBeside(
    async () => (await projectNext(pool, projectedAtOnce)) === projectedAtOnce,
    projectEveryMs,
    async () => (await readLogTip(pool, signer.name)).seq - (await readProjection(pool)).seq,
    isOver,
  );
}

/** Seals all events; returns events per second. */
export async function sealRest({ pool }: Ledger): Promise<number> {
  const { size } = await readLogTip(pool, signer.name);
  const start = performance.now();
  while ((await sealNext(pool, signer, { ...sealOptions, everyMs: 0 })) === 'again');
  const after = await readLogTip(pool, signer.name);
  return (after.size - size) / secondsSince(start);
}

/** Projects all events into the read models; returns events per second. */
export async function projectRest({ pool }: Ledger): Promise<number> {
  const start = performance.now();
  let projected = 0;
  for (let read = 1; read > 0; projected += read) read = await projectNext(pool, projectedAtOnce);
  return projected / secondsSince(start);
}
