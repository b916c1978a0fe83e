/**
 * `node bench/age.ts [--events 10000000] [--dir DIR]`: what appends, look-ups, reports and commands take on a ledger of 112,000 events and
 * on one of at least so many, in one run: the months of both have the same size. It makes both ledgers, ten million events in a quarter to
 * half an hour with 20 GB of disk; with `--dir` they stay there, and the next run measures them again. `--only TEXT` measures the operations
 * whose name has the text; `--limit SECS` ends commands that take longer (600).
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fail, say } from '../src/base/terminal/terminal.ts';
import { addPostings } from '../src/audit/use-cases/projections/project.ts';
import { openLane } from '../src/ledger/store/lane.ts';
import { recordMakersAttestation } from './age/attest.ts';
import { startAgedGateway } from './age/gateway.ts';
import { type AgedLedger, besides, makeAgedLedger } from './age/make-ledger.ts';
import { leaveOpen } from './age/open-items.ts';
import { type Cost, measureBoth, operationsFor, type Subject } from './age/operations.ts';
import { type Ledger, readSettings, startLedger } from './ledger.ts';
import { projectRest, sealRest } from './log-load.ts';
import { startProgram } from './processes.ts';
import { row, ruler } from './report.ts';
import { startSyntheticNode } from './synthetic-node.ts';

const { values: flags } = parseArgs({
  options: {
    events: { type: 'string', default: '10000000' },
    dir: { type: 'string' },
    only: { type: 'string', default: '' },
    limit: { type: 'string', default: '600' },
  },
});
const fewEvents = 100_000;
const dir = path.resolve(flags.dir ?? path.join(import.meta.dirname, '.tollbook', `age-${process.pid}`));
const hourMs = 3_600_000;

/** Started programs; they are stopped in reverse order. */
const started: { stop(): Promise<void> }[] = [];
async function keep<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> {
  const one = await starting;
  started.push(one);
  return one;
}

/** The ledger under a name: as an earlier run has made it in the same directory, or new. */
async function ready(ledger: Ledger, name: string, events: number, toMs: number): Promise<AgedLedger> {
  const file = path.join(dir, `${name}.json`);
  if (existsSync(file)) {
    // an earlier version may have made it
    const add = addPostings(ledger.pool, 5_000);
    while (await add());
    return JSON.parse(readFileSync(file, 'utf8')) as AgedLedger;
  }
  const aged = await makeAgedLedger(ledger, { events, toMs, dir: path.join(dir, 'rows') });
  const lane = openLane({ url: ledger.url });
  await leaveOpen(ledger, lane, aged.jobs);
  await sealRest(ledger);
  await recordMakersAttestation(ledger, lane);
  await sealRest(ledger);
  await projectRest(ledger);
  await lane.close();
  await ledger.pool.query('vacuum analyze');
  writeFileSync(file, JSON.stringify(aged));
  return aged;
}

async function subjectOf(
  name: string,
  ledger: Ledger,
  aged: AgedLedger,
  facilitatorUrl: string,
): Promise<Subject> {
  const own = path.join(dir, name);
  mkdirSync(own, { recursive: true });
  const lane = openLane({ url: ledger.url });
  started.push({ stop: () => lane.close() });
  const node = await keep(startSyntheticNode());
  const [fromSecs, toSecs] = [aged.fromMs, aged.toMs].map((ms) => ms / 1_000) as [number, number];
  node.show({ jobs: aged.jobs, atOnce: besides, fromSecs, toSecs });
  const gateway = await keep(startAgedGateway(ledger, lane, { facilitatorUrl, dir: own }));
  const { rows } = await ledger.pool.query<{ next: number }>(
    // the calls that are open at the end have the highest numbers: a job's number is one less than its call's
    'select max(call_id) as next from tollbook.call',
  );
  return {
    ...aged,
    ledger,
    lane,
    gateway,
    nodeUrl: node.url,
    dir: own,
    nextJob: rows[0]?.next ?? 0,
  };
}

const shown = ({ ms }: Cost, limitSecs: number): string => {
  if (ms === undefined) return `over ${limitSecs} s`;
  return ms < 1_000 ? `${ms.toFixed(1)} ms` : `${(ms / 1_000).toFixed(1)} s`;
};
const memoryOf = ({ mebibytes }: Cost): string => (mebibytes === undefined ? '' : `${mebibytes} MiB`);

async function main(): Promise<void> {
  mkdirSync(dir, { recursive: true });
  chmodSync(dir, 0o755);
  const big = await keep(startLedger(path.join(dir, 'pg'), { shared_buffers: '1GB', max_wal_size: '16GB' }));
  const small = await keep(big.beside('few'));
  const toMs = Math.floor(Date.now() / hourMs) * hourMs;
  const few = await ready(small, 'few', fewEvents, toMs);
  const many = await ready(big, 'many', Number(flags.events), toMs);
  const { url } = await keep(startProgram('facilitator.ts'));
  const subjects = [
    await subjectOf('few', small, few, url),
    await subjectOf('many', big, many, url),
  ] as const;
  const limitSecs = Number(flags.limit);
  const columns = [
    '',
    ...[few, many].map(({ events }) => `${events.toLocaleString('en-US')} events`),
    'ratio',
    'memory',
    'memory',
  ];
  say(row(columns));
  say(ruler(columns));
  for (const operation of operationsFor(limitSecs).filter(({ name }) => name.includes(flags.only))) {
    try {
      const costs = await measureBoth(operation, subjects);
      const [one, other] = costs.map(({ ms }) => ms);
      const ratio = one === undefined || other === undefined ? '' : (other / one).toFixed(2);
      const cells = costs.map((cost) => shown(cost, limitSecs));
      say(row([operation.name, ...cells, ratio, ...costs.map(memoryOf)]));
    } catch (error) {
      // the others are measured all the same
      fail(`${operation.name}: ${String(error)}`);
      process.exitCode = 1;
    }
  }
  say(`\n- PostgreSQL: ${await readSettings(big)}.`);
}

async function stopAll(): Promise<void> {
  for (let one = started.pop(); one; one = started.pop())
    await one.stop().catch((error: unknown) => fail(String(error)));
  if (flags.dir === undefined) rmSync(dir, { recursive: true, force: true });
}

let stopping: Promise<void> | undefined;
const end = async (): Promise<void> => {
  stopping ??= stopAll();
  await stopping;
  process.exit();
};
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void end());
main().then(end, (error: unknown) => {
  fail(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
  return end();
});
