/** Jobs of pg-boss, fetched and completed in batches. */
import { PgBoss } from 'pg-boss';

const [, , connectionString, inFlight, batchSize] = process.argv;
process.on('disconnect', () => process.exit());
const boss = new PgBoss({ connectionString, max: 10, supervise: false, schedule: false });
boss.on('error', (error) => {
  throw error;
});
await boss.start();
const queue = 'work';
await boss.createQueue(queue);
const body = 'ab'.repeat(100);

async function fill(jobs) {
  for (let from = 0; from < jobs; from += 1_000) {
    const some = Array.from({ length: Math.min(1_000, jobs - from) }, (_, n) => ({
      data: { n: from + n, body },
    }));
    await boss.insert(queue, some);
  }
  await boss.getDb().executeSql('vacuum analyze pgboss.job');
}

/** Seconds until this many jobs were taken and completed. */
async function work(jobs) {
  let left = jobs;
  const startMs = performance.now();
  const worker = async () => {
    while (left > 0) {
      const taken = await boss.fetch(queue, { batchSize: Number(batchSize) });
      if (taken.length === 0) return;
      await boss.complete(
        queue,
        taken.map(({ id }) => id),
      );
      left -= taken.length;
    }
  };
  await Promise.all(Array.from({ length: Math.ceil(Number(inFlight) / Number(batchSize)) }, worker));
  if (left > 0) throw new Error(`pg-boss left ${left} jobs`);
  return (performance.now() - startMs) / 1_000;
}

process.on('message', ({ op, jobs }) => {
  void (op === 'fill' ? fill(jobs) : work(jobs)).then((secs) => process.send({ secs }));
});
process.send({ url: '' });
