import { once } from 'node:events';
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { fail } from '../../src/base/terminal/terminal.ts';
import type { Ledger } from '../ledger.ts';
import { eventsAJob, projectRest, sealRest, secondsSince } from '../log-load.ts';
import type { Chunk } from './leaves.ts';

/** As many events as a month has; both ledgers have months of this size. */
export const eventsAMonth = 56_000;
export const monthMs = 30 * 86_400_000;
const jobsAMonth = eventsAMonth / eventsAJob;
/** Jobs that are in progress simultaneously. */
export const besides = 8;
/** Jobs of one file. */
const jobsAChunk = 1_000 * besides;
const threads = 2;

/** A ledger of whole months of paid jobs, each delivered; the last month ends at `toMs`. Times are Unix milliseconds. */
export interface AgedLedger {
  readonly events: number;
  readonly jobs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Fills an empty ledger with at least so many events, in months of {@link eventsAMonth}: leaves, claims and counters by `COPY`, of the same
 * bytes that the lane would have written, then the log by the sealer and the read models by the projector. Its jobs, hashes and signatures
 * are the same in every run; its times end with `toMs`.
 */
export async function makeAgedLedger(
  ledger: Ledger,
  { events, toMs, dir }: { readonly events: number; readonly toMs: number; readonly dir: string },
): Promise<AgedLedger> {
  const months = Math.ceil(events / eventsAMonth);
  const jobs = months * jobsAMonth;
  const aged = { events: jobs * eventsAJob, jobs, fromMs: toMs - months * monthMs, toMs };
  const start = performance.now();
  const tell = (what: string): void =>
    fail(`${aged.events.toLocaleString('en-US')} events: ${what} after ${secondsSince(start).toFixed(0)} s`);
  await copyJobs(ledger, aged, dir);
  tell('written');
  await finish(ledger, aged);
  await sealRest(ledger);
  tell('sealed');
  await projectRest(ledger);
  tell('read models');
  await ledger.pool.query('vacuum analyze');
  tell('vacuumed');
  return aged;
}

async function copyJobs({ pool }: Ledger, { jobs, fromMs }: AgedLedger, dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  // the server may run as another account
  chmodSync(dir, 0o755);
  const chunks = Array.from({ length: Math.ceil(jobs / jobsAChunk) }, (_, i): Chunk => {
    const first = i * jobsAChunk;
    return {
      first,
      jobs: Math.min(jobsAChunk, jobs - first),
      eventsFile: path.join(dir, `events-${i}`),
      claimsFile: path.join(dir, `claims-${i}`),
      besides,
      startMs: fromMs,
      everyMs: (monthMs / jobsAMonth) * besides,
    };
  });
  const workers = Array.from({ length: threads }, () => new Worker(new URL('leaves.ts', import.meta.url)));
  const written = new Map<number, Promise<unknown>>();
  const begin = (i: number): void => {
    const [chunk, worker] = [chunks[i], workers[i % threads]];
    if (!chunk || !worker) return;
    // one chunk at a time is asked of each thread, so its next message is about this one
    written.set(i, once(worker, 'message'));
    worker.postMessage(chunk, []);
  };
  for (let i = 0; i < threads; i++) begin(i);
  for (const [i, { eventsFile, claimsFile }] of chunks.entries()) {
    await written.get(i);
    written.delete(i);
    begin(i + threads);
    await pool.query(
      `copy tollbook.event (seq, at, version, lane_id, stream, type, data) from '${eventsFile}'`,
    );
    await pool.query(`copy tollbook.claim (key, binding, stream) from '${claimsFile}'`);
    rmSync(eventsFile);
    rmSync(claimsFile);
  }
  await Promise.all(workers.map((worker) => worker.terminate()));
}

/** What the lane keeps besides events and claims, and the places of readers that have nothing to do with finished jobs. */
async function finish({ pool }: Ledger, { events, jobs }: AgedLedger): Promise<void> {
  await pool.query(`
    delete from tollbook.lane;
    insert into tollbook.lane (lane_id, batch, seq, at, open_calls, unsettled_calls)
      select 1, 1, seq, at, 0, 0 from tollbook.event where seq = ${events};
    insert into tollbook.lane_counter (lane_id, type, batch, count)
      select 1, type, 1, count(*) from tollbook.event group by type;
    update tollbook.ledger_cursor set seq = ${events};
    alter table tollbook.call alter column call_id restart with ${jobs + 1};
  `);
}
