/**
 * `node bench/log.ts [--events 1000000]` measures the log: sealing beside the lane at full load and alone, the read models,
 * export, verify with its memory, and a payment's history with its proof.
 */
import { createWriteStream, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { exportLines } from '../src/finance/use-cases/books/export-leaves.ts';
import { openLogReader } from '../src/audit/use-cases/log/log-reader.ts';
import { readPaymentHistory } from '../src/audit/use-cases/projections/payment-history.ts';
import { fail, say } from '../src/base/terminal/terminal.ts';
import { readHead } from '../src/audit/store/log.ts';
import { paidJob } from '../test/support/synthetic-ledger.ts';
import { type Ledger, startLedger } from './ledger.ts';
import { runMeasured } from './measured-command.ts';
import { eventsAJob, loadJobs, projectRest, sealBeside, sealRest, secondsSince, signer } from './log-load.ts';

const { values: flags } = parseArgs({ options: { events: { type: 'string', default: '1000000' } } });
const events = Number(flags.events);
const inFlight = 256;
const stories = 1_000;
const dir = path.join(import.meta.dirname, '.tollbook', `log-${process.pid}`);
const rate = (count: number, secs: number): string => `${Math.round(count / secs).toLocaleString('en-US')}/s`;

async function measureStories(ledger: Ledger, jobs: number): Promise<string> {
  const reader = openLogReader(ledger.pool, signer.name);
  const times: number[] = [];
  const digestOf = (i: number) =>
    paidJob(Math.floor(((i * 7919) % stories) * (jobs / stories)))[0]?.stream ?? '';
  // warm up: a running gateway has compiled this code
  for (let i = 0; i < 100; i++) await readPaymentHistory(ledger.pool, reader, digestOf(3 * i + 1));
  const digests = Array.from({ length: stories }, (_, i) => digestOf(i));
  const cpu = process.cpuUsage();
  for (const digest of digests) {
    const start = performance.now();
    const story = await readPaymentHistory(ledger.pool, reader, digest);
    if (story?.events.some(({ proof }) => !proof)) throw new Error('a story without its proof');
    times.push(performance.now() - start);
  }
  const sorted = times.toSorted((a, b) => a - b);
  const { user, system } = process.cpuUsage(cpu);
  return `p50 ${sorted[stories / 2]?.toFixed(1)} ms, p99 ${sorted[stories * 0.99]?.toFixed(1)} ms (${((user + system) / 1_000 / times.length).toFixed(1)} ms of CPU)`;
}

async function verify(file: string, checkpoints: readonly string[]): Promise<string> {
  const given = checkpoints.flatMap((name) => ['--checkpoint', name]);
  const args = ['verify', file, ...given, '--pubkey', signer.verifierKeys[0]];
  const { secs, userSecs, mebibytes, out } = await runMeasured(args);
  if (!out.includes('\nsound')) throw new Error(out);
  return `${rate(events, secs)} (${secs.toFixed(1)} s, ${userSecs} s of CPU), at most ${mebibytes} MiB`;
}

async function main(): Promise<void> {
  mkdirSync(dir, { recursive: true });
  const ledger = await startLedger(path.join(dir, 'pg'), {});
  try {
    const jobs = Math.ceil(events / eventsAJob);
    const third = Math.floor(jobs / 3);
    say(`lane alone: ${rate(await loadJobs(ledger, { first: 0, count: third, inFlight }), 1)}`);
    say(`sealing alone: ${rate(await sealRest(ledger), 1)}`);
    const old = path.join(dir, 'old.ckpt');
    writeFileSync(old, (await readHead(ledger.pool, signer.name))?.note ?? '');
    let isOver = false;
    const sealing = sealBeside(ledger, () => isOver);
    const beside = await loadJobs(ledger, { first: third, count: jobs - third, inFlight });
    isOver = true;
    const mostBehind = await sealing;
    say(
      `lane with the sealer beside: ${rate(beside, 1)}, sealer at most ${mostBehind} events behind (${(mostBehind / beside).toFixed(2)} s)`,
    );
    await sealRest(ledger);
    say(`read models: ${rate(await projectRest(ledger), 1)}`);
    say(`a payment's story with its proof: ${await measureStories(ledger, jobs)}`);
    const file = path.join(dir, 'export.jsonl');
    const exporting = performance.now();
    await pipeline(
      Readable.from(exportLines(ledger.pool, 1), { objectMode: true, highWaterMark: 1 }),
      createWriteStream(file),
    );
    say(`export: ${rate(events, secondsSince(exporting))}, ${Math.round(statSync(file).size / 2 ** 20)} MiB`);
    const head = path.join(dir, 'new.ckpt');
    writeFileSync(head, (await readHead(ledger.pool, signer.name))?.note ?? '');
    say(`verify of the export: ${await verify(file, [old, head])}`);
  } finally {
    await ledger.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

main().catch((error: unknown) => {
  fail(String(error));
  process.exitCode = 1;
});
