/**
 * `npm run bench` compares Tollbook with the official x402 middlewares, alone and in front of an HTTP API, and with Portkey's gateway,
 * measures the log, and prints a Markdown table of each; `-- --only payments`, `slow-facilitator`, `routes`, `upto`, `chat`, `log`, `attack`, `bytes` or
 * `flood` one of them; `-- --quick` takes half a minute each, `routes` two; `-- --profile` writes CPU profiles of Tollbook alone instead;
 * `-- --having TEXT` measures the scenarios whose title has the text; `-- --only routes --before DIR` another checkout, with the same migrations, in the same rounds. Everything it starts it ends.
 */
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { inspect, parseArgs } from 'node:util';
import { fail, say } from '../src/base/terminal/terminal.ts';
import type { Bench } from './bench.ts';
import { attackPart } from './attack/part.ts';
import { bytesPart } from './bytes/part.ts';
import { chatPart } from './chat/part.ts';
import { floodPart } from './flood-part.ts';
import { logPart } from './log-part.ts';
import { paymentPart, slowFacilitatorPart } from './payment-part.ts';
import { routesPart } from './routes/part.ts';
import { uptoPart } from './upto/part.ts';

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    only: { type: 'string' },
    before: { type: 'string' },
    having: { type: 'string', default: '' },
  },
});
const parts = {
  payments: paymentPart,
  'slow-facilitator': slowFacilitatorPart,
  routes: routesPart,
  upto: uptoPart,
  chat: chatPart,
  log: logPart,
  attack: attackPart,
  bytes: bytesPart,
  flood: floodPart,
};
const mostSecs = 3_600;

/** Started programs; they are stopped in reverse order. */
const started: { stop(): Promise<void> }[] = [];
const homeDir = path.join(import.meta.dirname, '.tollbook');
const dir = path.join(homeDir, `run-${process.pid}`);

const bench: Bench = {
  rounds: flags.quick ? 1 : 3,
  runSecs: flags.quick ? 0.8 : 4,
  warmSecs: flags.quick ? [0.3] : [0.5, 1],
  dir,
  homeDir,
  beforeDir: flags.before,
  having: flags.having,
  async keep(starting) {
    const one = await starting;
    started.push(one);
    return one;
  },
};

async function stopAll(): Promise<void> {
  for (let one = started.pop(); one; one = started.pop()) await one.stop().catch(tell);
  rmSync(dir, { recursive: true, force: true });
}

/** The error with its causes. */
function tell(error: unknown): void {
  fail(inspect(error));
}

async function main(): Promise<void> {
  setTimeout(() => void end(new Error(`not done in ${mostSecs} s`)), mostSecs * 1_000).unref();
  const { only } = flags;
  if (only !== undefined && !Object.hasOwn(parts, only))
    throw new Error(`--only takes ${Object.keys(parts).join(' or ')}`);
  for (const [name, part] of Object.entries(parts)) {
    if (only !== undefined && only !== name) continue;
    mkdirSync(dir, { recursive: true });
    say(`${await (flags.profile ? part.profile(bench) : part.compare(bench))}\n`);
    // everything of one part stops before the next part is measured
    await stopAll();
  }
}

let stopping: Promise<void> | undefined;

/** Stops everything once: npm delivers Ctrl-C twice. */
async function end(error?: unknown): Promise<void> {
  // errors during the stop are caused by the stop
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
