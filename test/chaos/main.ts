/** `npm run chaos`: see README.md beside this file. */
import { parseArgs } from 'node:util';
import { type ChaosOptions, makeRuns, summarize } from './chaos.ts';
import { makePlantedCopy } from './planted-copy.ts';
import { type Plant, plants } from './plants.ts';
import type { ScenarioKind } from './schedule.ts';
import { scenarioKinds } from './scenarios.ts';

const say = (line: string): void => console.log(line);

function readOptions() {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string' },
      seed: { type: 'string' },
      processes: { type: 'string' },
      scenarios: { type: 'string' },
      only: { type: 'string' },
      kind: { type: 'string' },
      plant: { type: 'string' },
      planted: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
    },
  });
  const whole = (name: 'runs' | 'processes' | 'scenarios' | 'only', least: number, most: number) => {
    const text = values[name];
    if (text === undefined) return undefined;
    const number = Number(text);
    if (!Number.isInteger(number) || number < least || number > most)
      throw new Error(`--${name} is a whole number from ${least} to ${most}`);
    return number;
  };
  const options = {
    runs: whole('runs', 1, 10_000),
    seed: values.seed ?? String(Date.now() % 1_000_000),
    processes: whole('processes', 1, 8),
    scenarios: whole('scenarios', 1, 500),
    only: whole('only', 1, 10_000),
    kind: kindOf(values.kind),
    keepsAll: values.keep,
    say,
  };
  return { ...options, plant: values.plant, planted: values.planted };
}

function kindOf(name: string | undefined): ScenarioKind | undefined {
  const kind = scenarioKinds.find((one) => one === name);
  if (name !== undefined && !kind) throw new Error(`--kind is one of ${scenarioKinds.join(', ')}`);
  return kind;
}

type Options = ReturnType<typeof readOptions>;

/** Runs the program as it is. False where an invariant broke. */
async function runPlain(options: ChaosOptions): Promise<boolean> {
  const reports = await makeRuns(options);
  for (const line of summarize(reports)) say(line);
  return reports.every(({ violations }) => violations.length === 0);
}

/** What broke while a bug was planted. */
interface Hunt {
  readonly broken: ReadonlySet<string>;
  readonly runs: number;
  readonly payments: number;
}

/** Runs a copy with a bug in it until an invariant breaks that should catch it. */
async function runPlanted(plant: Plant, options: Options): Promise<Hunt> {
  const copy = makePlantedCopy(plant);
  try {
    say(`planted: ${plant.name}`);
    const reports = await makeRuns({
      ...options,
      runs: options.runs ?? 20,
      root: copy.root,
      stopsAt: plant.caughtBy,
    });
    return {
      broken: new Set(reports.flatMap(({ violations }) => violations.map(({ kind }) => kind))),
      runs: reports.length,
      payments: reports.reduce((sum, { payments }) => sum + payments.signed, 0),
    };
  } finally {
    copy.remove();
  }
}

/** Whether every planted bug is caught, and by what should catch it. */
async function runAllPlanted(options: Options): Promise<boolean> {
  const lines: string[] = [];
  let areAllCaught = true;
  for (const plant of plants) {
    const { broken, runs, payments } = await runPlanted(plant, options);
    const isCaught = plant.caughtBy.some((kind) => broken.has(kind));
    areAllCaught &&= isCaught;
    const found = `${isCaught ? 'caught' : 'MISSED'}  ${plant.name}: ${[...broken].join(', ') || 'nothing broke'}`;
    lines.push(`${found}; seed ${options.seed}, run ${runs}, ${payments} payments`);
  }
  for (const line of lines) say(line);
  return areAllCaught;
}

async function run(options: Options): Promise<boolean> {
  say(`seed ${options.seed}`);
  if (options.planted) return runAllPlanted(options);
  if (options.plant === undefined) return runPlain({ ...options, runs: options.runs ?? 40 });
  const plant = plants.find(({ name }) => name === options.plant);
  if (!plant) throw new Error(`--plant is one of ${plants.map(({ name }) => name).join(', ')}`);
  return (await runPlanted(plant, options)).broken.size === 0;
}

try {
  process.exitCode = (await run(readOptions())) ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 64;
}
