/**
 * `node bench/log.ts [--events 1000000]` measures the log: sealing beside the lane at full load and alone, the read models,
 * export, verify with its memory, and a payment's story with its proof.
 */
import { execFile } from 'node:child_process';
import { createWriteStream, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { exportLines } from '../src/audit/export.ts';
import { openLogReader } from '../src/audit/log-reader.ts';
import { projectNext } from '../src/audit/project.ts';
import { sealNext } from '../src/audit/seal.ts';
import { auditStory } from '../src/audit/story.ts';
import { fail, say } from '../src/cli/terminal.ts';
import { noteSigner } from '../src/domain/checkpoint.ts';
import { openLane } from '../src/store/lane.ts';
import { readHead, readLogTip } from '../src/store/log.ts';
import { paidJob, type Told } from '../test/support/synthetic-ledger.ts';
import { type Ledger, startLedger } from './ledger.ts';

const { values: flags } = parseArgs({ options: { events: { type: 'string', default: '1000000' } } });
const events = Number(flags.events);
const eventsAJob = 7;
const inFlight = 256;
const signer = noteSigner('bench.example/log', Buffer.alloc(32, 1));
const options = { everyMs: 1_000, everyEvents: 10_000 };
const dir = path.join(import.meta.dirname, '.tollbook', `log-${process.pid}`);
const secondsSince = (start: number): number => (performance.now() - start) / 1_000;
const rate = (count: number, secs: number): string => `${Math.round(count / secs).toLocaleString('en-US')}/s`;

/** Appends paid jobs as a gateway does, in three commands each. Returns events a second. */
async function load({ url }: Ledger, firstJob: number, jobs: number): Promise<number> {
  const lane = openLane({ url });
  const start = performance.now();
  let next = firstJob;
  const one = async (): Promise<void> => {
    while (next < firstJob + jobs) {
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
  return (jobs * eventsAJob) / secondsSince(start);
}

function commandOf(told: readonly Told[]) {
  return { stream: told[0]?.stream ?? '', events: told.map(({ event }) => event) };
}

async function sealBeside(
  { pool }: Ledger,
  isOver: () => boolean,
): Promise<{ mostBehind: number; heads: number }> {
  let [mostBehind, heads] = [0, 0];
  while (!isOver()) {
    const { seq, size, head } = await readLogTip(pool, signer.name);
    if (head && head.ageMs > options.everyMs) mostBehind = Math.max(mostBehind, seq - size);
    if ((await sealNext(pool, signer, options)) === 'again') heads += 1;
    else await new Promise((resolve) => setTimeout(resolve, options.everyMs / 2));
  }
  return { mostBehind, heads };
}

async function sealRest({ pool }: Ledger): Promise<number> {
  const { size } = await readLogTip(pool, signer.name);
  const start = performance.now();
  while ((await sealNext(pool, signer, { ...options, everyMs: 0 })) === 'again');
  const after = await readLogTip(pool, signer.name);
  return (after.size - size) / secondsSince(start);
}

async function measureStories(ledger: Ledger, jobs: number): Promise<string> {
  const reader = openLogReader(ledger.pool, signer.name);
  const times: number[] = [];
  for (let i = 0; i < 500; i++) {
    const digest = paidJob(Math.floor(((i * 7919) % 500) * (jobs / 500)))[0]?.stream ?? '';
    const start = performance.now();
    const story = await auditStory(ledger.pool, reader, digest);
    if (story?.events.some(({ proof }) => !proof)) throw new Error('a story without its proof');
    times.push(performance.now() - start);
  }
  const sorted = times.toSorted((a, b) => a - b);
  return `p50 ${sorted[250]?.toFixed(1)} ms, p99 ${sorted[495]?.toFixed(1)} ms`;
}

async function verify(file: string, checkpoints: readonly string[]): Promise<string> {
  const given = checkpoints.flatMap((name) => ['--checkpoint', name]);
  const program = path.join(import.meta.dirname, '../src/cli/tollbook.ts');
  const args = ['-v', process.execPath, program, 'verify', file, ...given, '--pubkey', signer.verifierKey];
  const start = performance.now();
  const { out, err } = await new Promise<{ out: string; err: string }>((resolve) =>
    execFile('/usr/bin/time', args, (_, stdout, stderr) => resolve({ out: stdout, err: stderr })),
  );
  if (!out.includes('\nsound')) throw new Error(out + err);
  const secs = secondsSince(start);
  const [, kilobytes = '0'] = /Maximum resident set size \(kbytes\): (\d+)/.exec(err) ?? [];
  const [, user = '0'] = /User time \(seconds\): ([\d.]+)/.exec(err) ?? [];
  return `${rate(events, secs)} (${secs.toFixed(1)} s, ${user} s of CPU), at most ${Math.round(Number(kilobytes) / 1_024)} MiB`;
}

async function main(): Promise<void> {
  mkdirSync(dir, { recursive: true });
  const ledger = await startLedger(path.join(dir, 'pg'), {});
  try {
    const jobs = Math.ceil(events / eventsAJob);
    const third = Math.floor(jobs / 3);
    say(`lane alone: ${rate(await load(ledger, 0, third), 1)}`);
    say(`sealing alone: ${rate(await sealRest(ledger), 1)}`);
    const old = path.join(dir, 'old.ckpt');
    writeFileSync(old, (await readHead(ledger.pool, signer.name))?.note ?? '');
    let isOver = false;
    const sealing = sealBeside(ledger, () => isOver);
    const beside = await load(ledger, third, jobs - third);
    isOver = true;
    const { mostBehind } = await sealing;
    say(
      `lane with the sealer beside: ${rate(beside, 1)}, sealer at most ${mostBehind} events behind (${(mostBehind / beside).toFixed(2)} s)`,
    );
    await sealRest(ledger);
    const start = performance.now();
    let projected = 0;
    for (let read = 1; read > 0; projected += read) read = await projectNext(ledger.pool, 5_000);
    say(`read models: ${rate(projected, secondsSince(start))}`);
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
