/**
 * `npm run bench` measures Tollbook beside x402's own middlewares and prints a Markdown table; `-- --quick` takes half a
 * minute; `-- --profile` writes CPU profiles of Tollbook alone instead. Everything it starts it ends.
 */
import { mkdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { inspect, parseArgs } from 'node:util';
import { fail, say } from '../src/cli/terminal.ts';
import { measureSyncMs, readSettings, startLedger } from './ledger.ts';
import {
  type Measurement,
  measure,
  measureExchange,
  type Scenario,
  type Stage,
  type Target,
} from './measure.ts';
import { startProgram } from './processes.ts';
import { profileTollbook } from './profile.ts';
import { foreignCores, tableOf } from './report.ts';
import { startTollbook } from './tollbook.ts';

const { values: flags } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, profile: { type: 'boolean', default: false } },
});
const rounds = flags.quick ? 1 : 3;
const runSecs = flags.quick ? 0.8 : 4;
const mostSecs = 600;

const scenarios: readonly Scenario[] = [
  { title: 'Paid request, 64 at a time', what: 'payments', concurrency: 64, secs: runSecs },
  { title: 'Paid request, 256 at a time', what: 'payments', concurrency: 256, secs: runSecs },
  { title: 'Answer 402, 64 at a time', what: 'unpaid', concurrency: 64, secs: runSecs },
  { title: 'Paid request, one at a time', what: 'payments', concurrency: 1, secs: runSecs / 2 },
];

/** What has to be stopped, the last started first. */
const started: { stop(): Promise<void> }[] = [];
const homeDir = path.join(import.meta.dirname, '.tollbook');
const dir = path.join(homeDir, `run-${process.pid}`);

/** Remembers what was started, so that it is stopped. */
async function keep<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> {
  const one = await starting;
  started.push(one);
  return one;
}

let stopping: Promise<void> | undefined;

async function stopAll(): Promise<void> {
  for (let one = started.pop(); one; one = started.pop()) await one.stop().catch(tell);
  rmSync(dir, { recursive: true, force: true });
}

/** With what went wrong inside it. */
function tell(error: unknown): void {
  fail(inspect(error));
}

async function startStage(): Promise<Stage> {
  mkdirSync(dir, { recursive: true });
  const settings = flags.profile ? { track_functions: 'all', track_io_timing: 'on' } : {};
  const ledger = await keep(startLedger(path.join(dir, 'pg'), settings));
  const stub = await keep(startProgram('facilitator.ts'));
  const load = await keep(startProgram('load.ts'));
  return { ledger, stub, load };
}

async function startTargets({ ledger, stub }: Stage): Promise<Target[]> {
  const targets: Target[] = [];
  for (const verify of [true, false]) {
    const { pid, url } = await keep(
      startTollbook({ databaseUrl: ledger.url, facilitatorUrl: stub.url, verify, dir }),
    );
    const name = verify ? 'Tollbook' : 'Tollbook, facilitator_verify = false';
    targets.push({ name, isPeer: false, pid, url, offersUrl: url, signed: !verify });
  }
  for (const peer of ['express', 'hono']) {
    const { pid, url } = await keep(startProgram(`peers/${peer}.mjs`, [stub.url]));
    targets.push({ name: `@x402/${peer}`, isPeer: true, pid, url, offersUrl: url, signed: false });
  }
  return targets;
}

async function compare(stage: Stage): Promise<string> {
  const targets = await startTargets(stage);
  /** Requests a second as last seen: a run gets as many requests as it takes `secs` to answer. */
  const rates = new Map<string, number>();
  const run = async (target: Target, scenario: Scenario) => {
    const key = `${target.name}/${scenario.what}/${scenario.concurrency}`;
    const rate = rates.get(key) ?? 4 * scenario.concurrency + 200;
    const count = Math.max(scenario.concurrency * 4, Math.round(rate * scenario.secs));
    const measured = await measure(stage, target, scenario, count);
    rates.set(key, measured.perSec);
    fail(`${scenario.title}: ${target.name} ${Math.round(measured.perSec)}/s`);
    return measured;
  };

  // until the code is warm and its rate is known
  for (const secs of flags.quick ? [0.3] : [0.5, 1]) {
    for (const target of targets) {
      for (const scenario of scenarios) if (isOf(scenario, target)) await run(target, { ...scenario, secs });
    }
  }
  const findings = scenarios.map((scenario) => ({
    scenario,
    rounds: new Map<Target, Measurement[]>(
      targets.filter((target) => isOf(scenario, target)).map((target) => [target, []]),
    ),
  }));
  for (let round = 0; round < rounds; round++) {
    for (const { scenario, rounds: measured } of findings) {
      // another one begins each time, so that nobody always follows the same
      const order = [...measured.keys()];
      order.push(...order.splice(0, round % order.length));
      for (const target of order) measured.get(target)?.push(await run(target, scenario));
    }
  }
  return `${tableOf(findings)}\n\n${await circumstances(stage, foreignCores(findings))}`;
}

/** A 402 has nothing to verify. */
function isOf({ what }: Scenario, { signed }: Target): boolean {
  return what === 'payments' || !signed;
}

async function circumstances(stage: Stage, foreign: string): Promise<string> {
  const exchange = await measureExchange(stage);
  const cpus = os.cpus();
  return [
    `- ${new Date().toISOString().slice(0, 10)}, ${cpus.length} cores (${cpus[0]?.model.trim()}), Node ${process.versions.node}, Linux ${os.release()}. ` +
      'The server, PostgreSQL, the load generator and the stub facilitator share these cores; ' +
      `programs of others took ${foreign}.`,
    `- PostgreSQL: ${await readSettings(stage.ledger)}; one fdatasync of this disk: ${measureSyncMs(dir).toFixed(2)} ms.`,
    `- The stub facilitator answers in ${exchange.p50Ms.toFixed(2)} ms (p50, one at a time); every paid request asks it twice, with facilitator_verify = false once.`,
    `- Medians of ${rounds} interleaved round${rounds === 1 ? '' : 's'}; every payment unique; every settlement, event and counter checked after each run. ` +
      'The peers store nothing; Tollbook commits durably before it settles and again before it answers, and logs a line a request.',
  ].join('\n');
}

async function main(): Promise<void> {
  setTimeout(() => void end(new Error(`not done in ${mostSecs} s`)), mostSecs * 1_000).unref();
  const stage = await startStage();
  const places = { dir, homeDir, runSecs: 4 * runSecs };
  say(await (flags.profile ? profileTollbook(stage, places) : compare(stage)));
}

/** Stops everything once, whoever asks first: npm delivers Ctrl-C twice. */
async function end(error?: unknown): Promise<void> {
  // what breaks while stopping broke because of it
  if (error !== undefined && stopping === undefined) {
    tell(error);
    process.exitCode = 1;
  }
  stopping ??= stopAll();
  await stopping;
  process.exit();
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void end(signal));
main().then(
  () => end(),
  (error: unknown) => end(error),
);
