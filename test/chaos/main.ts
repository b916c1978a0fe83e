/** `npm run chaos`: see README.md beside this file. */
import { parseArgs } from 'node:util';
import { newSeed, oneOf, runCommand, say, whole } from './command-line.ts';
import { type ChaosOptions, makeRuns, summarize } from './chaos.ts';
import { huntAll, huntOne } from './hunt.ts';
import { type Feature, features } from './schedule.ts';
import { scenarioKinds } from './scenarios.ts';

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
  const number = (name: 'runs' | 'processes' | 'scenarios' | 'only', most: number) => {
    const text = values[name];
    return text === undefined ? undefined : whole(name, text, 1, most);
  };
  const options = {
    runs: number('runs', 10_000),
    seed: values.seed ?? newSeed(),
    processes: number('processes', 8),
    scenarios: number('scenarios', 500),
    only: number('only', 10_000),
    kind: oneOf('kind', values.kind, scenarioKinds),
    having: oneOf('having', values.having, Object.keys(features) as Feature[]),
    keepsAll: values.keep,
    say,
  };
  return { ...options, plant: values.plant, planted: values.planted };
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

await runCommand(() => run(readOptions()));
