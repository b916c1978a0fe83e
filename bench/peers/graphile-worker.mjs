/** Jobs of graphile-worker: with its defaults, or with the settings that its documentation has for the highest rate. */
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const [, , connectionString, inFlight, settings] = process.argv;
const pgPool = new pg.Pool({ connectionString, max: 10 });
pgPool.on('error', () => {});
pgPool.on('connect', (client) => client.on('error', () => {}));
process.on('disconnect', () => process.exit());
const utils = await makeWorkerUtils({ pgPool });
await utils.migrate();
const longestMs = 120_000;
const payload = 'ab'.repeat(100);

const batches = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const logger = new Logger(() => () => {});

async function fill(jobs) {
  await pgPool.query(
    `select graphile_worker.add_job('work', json_build_object('n', n, 'body', $2::text)) from generate_series(1, $1::int) n`,
    [jobs, payload],
  );
  await pgPool.query('vacuum analyze graphile_worker._private_jobs');
}

async function countJobs() {
  const { rows } = await pgPool.query('select count(*)::int as jobs from graphile_worker._private_jobs');
  return rows[0].jobs;
}

/** Seconds until this many jobs were taken and completed. */
async function work(jobs) {
  let left = jobs;
  const { promise, resolve } = Promise.withResolvers();
  const startMs = performance.now();
  const runner = await run({
    pgPool,
    noHandleSignals: true,
    concurrency: Number(inFlight),
    logger,
    preset: { worker: { concurrentJobs: Number(inFlight), ...(settings === 'batches' ? batches : {}) } },
    taskList: { work: async () => void (--left === 0 && resolve()) },
  });
  await promise;
  // its last completions are written after their tasks have ended; stopped before, it would leave some
  while ((await countJobs()) > 0) {
    if (performance.now() - startMs > longestMs)
      throw new Error(`graphile-worker left ${await countJobs()} jobs`);
    await sleep(5);
  }
  const secs = (performance.now() - startMs) / 1_000;
  await runner.stop();
  return secs;
}

process.on('message', ({ op, jobs }) => {
  void (op === 'fill' ? fill(jobs) : work(jobs)).then((secs) => process.send({ secs }));
});
process.send({ url: '' });
