/**
 * `node bench/outbox.ts [--calls 20000] [--backlog 1000000]` measures the outbox on a durable PostgreSQL: calls leased and completed,
 * beside graphile-worker and pg-boss on the same server in interleaved rounds, and the time of a claim with a backlog of this many calls and
 * with one of a thousand.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { say } from '../src/base/terminal/terminal.ts';
import { openPool } from '../src/ledger/store/database.ts';
import { migrate } from '../src/ledger/store/migrations.ts';
import { type Ledger, startLedger } from './ledger.ts';
import { claims, fillQueue, timeClaim } from './outbox/backlog.ts';
import { atOnce, startRelay } from './outbox/work.ts';
import { cpuSecs, type Program, startProgram } from './processes.ts';

const { values: flags } = parseArgs({
  options: {
    calls: { type: 'string', default: '20000' },
    backlog: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
  },
});
const calls = Number(flags.calls);
const backlog = Number(flags.backlog);
const rounds = Number(flags.rounds);
const few = 1_000;
const dir = path.join(import.meta.dirname, '.tollbook', `outbox-${process.pid}`);

const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);
const at = (values: readonly number[], share: number): number =>
  sorted(values)[Math.floor((values.length - 1) * share)] ?? 0;
const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

interface Contender {
  readonly name: string;
  readonly pid: number;
  /** Fills its queue, before the clock starts. */
  readonly fill: () => Promise<unknown>;
  /** Seconds until its queue was worked off. */
  readonly run: () => Promise<number>;
  readonly rates: number[];
  readonly ownUs: number[];
  readonly databaseUs: number[];
}

const measured = () => ({ rates: [], ownUs: [], databaseUs: [] });

function peer(name: string, program: Program): Contender {
  return {
    name,
    pid: program.pid,
    fill: () => program.ask({ op: 'fill', jobs: calls }),
    run: async () => (await program.ask<{ secs: number }>({ op: 'work', jobs: calls })).secs,
    ...measured(),
  };
}

async function measure({ postmasterPid }: Ledger, contender: Contender): Promise<void> {
  const { pid, rates, ownUs, databaseUs } = contender;
  await contender.fill();
  const [own, database] = [cpuSecs(pid), cpuSecs(postmasterPid, true)];
  rates.push(calls / (await contender.run()));
  ownUs.push(((cpuSecs(pid) - own) * 1e6) / calls);
  databaseUs.push(((cpuSecs(postmasterPid, true) - database) * 1e6) / calls);
}

async function compare(on: Ledger, contenders: readonly Contender[]): Promise<void> {
  for (let round = 0; round < rounds; round++)
    for (const contender of contenders) await measure(on, contender);
  const best = Math.max(...contenders.slice(1).map(({ rates }) => at(rates, 0.5)));
  say(
    `| ${whole(calls)} calls, ${atOnce.inFlight} at once | per second (min–max) | × better peer | own CPU µs/call | PostgreSQL CPU µs/call |`,
  );
  say('| --- | --: | --: | --: | --: |');
  for (const { name, rates, ownUs, databaseUs } of contenders)
    say(
      `| ${name} | ${whole(at(rates, 0.5))} (${whole(at(rates, 0))}–${whole(at(rates, 1))}) | ${(at(rates, 0.5) / best).toFixed(2)} ` +
        `| ${whole(at(ownUs, 0.5))} | ${whole(at(databaseUs, 0.5))} |`,
    );
}

/** A database with a queue. */
interface Queue {
  readonly pool: pg.Pool;
  readonly owner: pg.Client;
}

/** Claims of a short and of a long queue take turns, so that the load of the machine is the same for both. */
async function compareClaims(short: Queue, long: Queue): Promise<void> {
  say(`| a claim of ten calls | ${whole(few)} ready, p50 ms | ${whole(backlog)} ready, p50 ms | ratio |`);
  say('| --- | --: | --: | --: |');
  for (const [title, services, jobs] of [
    ['one service', 1, 1],
    ['100 services', 100, 1],
    ['one service, 100 jobs', 1, 100],
  ] as const) {
    const shape = { services, jobs };
    const times = { short: [] as number[], long: [] as number[] };
    await fillQueue(long.owner, { calls: backlog, ...shape });
    for (let round = 0; round < rounds; round++) {
      await fillQueue(short.owner, { calls: few, ...shape });
      for (let claim = 0; claim < claims; claim++) {
        times.short.push(await timeClaim(short.pool, { calls: few, ...shape }));
        times.long.push(await timeClaim(long.pool, { calls: backlog, ...shape }));
      }
    }
    const [small, large] = [at(times.short, 0.5), at(times.long, 0.5)];
    say(`| ${title} | ${small.toFixed(2)} | ${large.toFixed(2)} | ${(large / small).toFixed(2)} |`);
  }
}

async function openQueue(url: string): Promise<Queue & { stop(): Promise<void> }> {
  await migrate(url);
  const owner = new pg.Client(url);
  await owner.connect();
  const pool = openPool({ url, maxConnections: 1 });
  return {
    owner,
    pool,
    async stop() {
      await owner.end();
      await pool.end();
    },
  };
}

mkdirSync(dir, { recursive: true });
const ledger = await startLedger(path.join(dir, 'pg'), { max_wal_size: '4GB' });
const owner = new pg.Client(ledger.url);
const programs: { stop(): Promise<void> }[] = [];
try {
  await owner.connect();
  const inFlight = String(atOnce.inFlight);
  const peers: Contender[] = [];
  for (const [name, file, ...args] of [
    ['graphile-worker, its defaults', 'graphile-worker.mjs', inFlight, 'defaults'],
    ['graphile-worker, local queue and batches', 'graphile-worker.mjs', inFlight, 'batches'],
    ['pg-boss, batches', 'pg-boss.mjs', inFlight, String(atOnce.batch)],
  ] as const) {
    const program = await startProgram(`peers/${file}`, [ledger.url, ...args]);
    programs.push(program);
    peers.push(peer(name, program));
  }
  const relay = startRelay(ledger.url);
  programs.push(relay);
  const ours: Contender = {
    name: 'Tollbook',
    pid: process.pid,
    fill: () => fillQueue(owner, { calls, services: 1, jobs: 1 }),
    run: () => relay.work(calls),
    ...measured(),
  };
  await compare(ledger, [ours, ...peers]);
  await owner.query('create database few');
  const short = await openQueue(ledger.url.replace('/bench?', '/few?'));
  const long = await openQueue(ledger.url);
  programs.push(short, long);
  await compareClaims(short, long);
  say(`load average ${loadavg()[0]?.toFixed(1)}`);
} finally {
  for (const program of programs) await program.stop();
  await owner.end();
  await ledger.stop();
  rmSync(dir, { recursive: true, force: true });
}
