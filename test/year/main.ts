/** `npm run year`: see README.md beside this file. */
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { twoSignals } from '../../src/base/terminal/terminal.ts';
import { network } from './chain.ts';
import { figuresOf } from './figures.ts';
import { findPlants } from './plants/check.ts';
import { makeGround } from './plants/ground.ts';
import { plants } from './plants/plants.ts';
import type { World, YearOptions } from './world.ts';
import { closeWorld, makeYear, openWorld, type YearSetup } from './year.ts';

const defaults = { payments: '100000', months: '12', seed: 'year' } as const;

function readOptions() {
  const { values } = parseArgs({
    options: {
      payments: { type: 'string', default: defaults.payments },
      months: { type: 'string', default: defaults.months },
      seed: { type: 'string', default: defaults.seed },
      keep: { type: 'boolean', default: false },
    },
  });
  const whole = (name: 'payments' | 'months', least: number, most: number): number => {
    const number = Number(values[name]);
    if (!Number.isInteger(number) || number < least || number > most)
      throw new Error(`--${name} is a whole number from ${least} to ${most}`);
    return number;
  };
  return {
    payments: whole('payments', 100, 1_000_000),
    months: whole('months', 2, 12),
    seed: values.seed,
    keep: values.keep,
  };
}

/** Breaks are planted into a month of at most this many payments: each into its own copy. */
const mostInGround = 600;

async function use(
  options: YearOptions,
  setup: YearSetup,
  work: (world: World) => Promise<void>,
): Promise<void> {
  const world = await openWorld(options, setup);
  try {
    await work(world);
  } finally {
    await closeWorld(world);
  }
}

/** What the finance commands need, as lines of a shell. */
function keptText({ ledger, chain }: World): string {
  return [
    'Until Ctrl-C these months can be read by every command of docs/finance:',
    `export DATABASE_URL='${ledger.url}'`,
    `RPC=${network}=${chain.rpcUrl}`,
    'tollbook period list',
  ].join('\n');
}

async function run(): Promise<void> {
  const options = readOptions();
  const began = performance.now();
  const say = (line: string): void =>
    console.log(`${((performance.now() - began) / 1_000).toFixed(1).padStart(7)} s  ${line}`);
  const dir = mkdtempSync(path.join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'tollbook-year-'));
  chmodSync(dir, 0o755);
  const postgres = await startEmbeddedPostgres({
    dir: path.join(dir, 'pg'),
    durable: false,
    settings: { file_copy_method: 'copy' },
  });
  const setup = { serverUrl: postgres.url('DATABASE'), say };
  try {
    await use(options, setup, async (world) => {
      await makeYear(world, setup);
      for (const line of await figuresOf(world)) say(line);
      if (!options.keep) return;
      console.log(keptText(world));
      await twoSignals().first;
    });
    if (options.keep) return;
    await use(options, setup, async (world) => {
      const { period, sales } = await makeGround(world, Math.min(options.payments, mostInGround));
      const failures = await findPlants(world, period, sales, say);
      if (failures.length > 0) throw new Error(failures.join('\n\n'));
      say(`${plants.length} breaks were planted, each alone: each was found, and nothing besides`);
    });
  } finally {
    await postgres.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

try {
  await run();
} catch (error) {
  console.error(error instanceof Error ? (error.stack ?? error.message) : error);
  process.exitCode = 1;
}
