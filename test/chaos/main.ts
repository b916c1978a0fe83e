/** `npm run chaos`: see README.md beside this file. */
import { parseArgs } from 'node:util';
import { type ChaosOptions, makeRuns, summarize } from './chaos.ts';
import { huntAll, huntOne } from './hunt.ts';
import { type Feature, features, type ScenarioKind } from './schedule.ts';
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
      having: { type: 'string' },
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
    having: featureOf(values.having),
    keepsAll: values.keep,
    say,
  };
  return { ...options, plant: values.plant, planted: values.planted };
}

const featureNames = Object.keys(features) as Feature[];

function kindOf(name: string | undefined): ScenarioKind | undefined {
  const kind = scenarioKinds.find((one) => one === name);
  if (name !== undefined && !kind) throw new Error(`--kind is one of ${scenarioKinds.join(', ')}`);
  return kind;
}

function featureOf(name: string | undefined): Feature | undefined {
  const feature = featureNames.find((one) => one === name);
  if (name !== undefined && !feature) throw new Error(`--having is one of ${featureNames.join(', ')}`);
  return feature;
}

type Options = ReturnType<typeof readOptions>;

/** Runs the program as it is. False if an invariant broke. */
async function runPlain(options: ChaosOptions): Promise<boolean> {
  const reports = await makeRuns(options);
  for (const line of summarize(reports)) say(line);
  return reports.every(({ violations }) => violations.length === 0);
}

async function run(options: Options): Promise<boolean> {
  say(`seed ${options.seed}`);
  if (options.planted) return huntAll(options);
  if (options.plant === undefined) return runPlain({ ...options, runs: options.runs ?? 40 });
  return !(await huntOne(options.plant, options));
}

try {
  process.exitCode = (await run(readOptions())) ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 64;
}
