import { type ChaosOptions, makeRuns } from './chaos.ts';
import { makePlantedCopy } from '../support/planted-copy.ts';
import type { Plant } from './plant.ts';
import { plants } from './plants.ts';
import { runTest } from '../support/run-test.ts';
import { type TestPlant, testPlants } from './test-plants.ts';

export interface HuntOptions extends Omit<ChaosOptions, 'runs'> {
  readonly runs?: number | undefined;
}

interface Hunt {
  readonly isCaught: boolean;
  /** What caught the bug, after how much. */
  readonly words: string;
}

const defaultRuns = 20;

/** Whether every planted bug is caught, and by what should catch it. */
export async function huntAll(options: HuntOptions): Promise<boolean> {
  const lines: string[] = [];
  let areAllCaught = true;
  for (const plant of [...plants, ...testPlants]) {
    const { isCaught, words } = await hunt(plant, options);
    areAllCaught &&= isCaught;
    lines.push(`${isCaught ? 'caught' : 'MISSED'}  ${plant.name}: ${words}`);
  }
  for (const line of lines) options.say(line);
  return areAllCaught;
}

/** The same for one of them. */
export async function huntOne(name: string, options: HuntOptions): Promise<boolean> {
  const all = [...plants, ...testPlants];
  const plant = all.find((one) => one.name === name);
  if (!plant) throw new Error(`--plant is one of ${all.map((one) => one.name).join(', ')}`);
  const { isCaught, words } = await hunt(plant, options);
  options.say(`${isCaught ? 'caught' : 'MISSED'}  ${name}: ${words}`);
  return isCaught;
}

function hunt(plant: Plant | TestPlant, options: HuntOptions): Promise<Hunt> {
  options.say(`planted: ${plant.name}`);
  return 'caughtByTest' in plant ? huntByTest(plant) : huntByRuns(plant, options);
}

/** Runs a copy with a bug in it until an invariant breaks that should catch it. */
async function huntByRuns(plant: Plant, options: HuntOptions): Promise<Hunt> {
  const copy = makePlantedCopy(plant);
  try {
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const reach = { runs: defaultRuns, ...plant.reachedBy, ...given };
    const reports = await makeRuns({ ...options, ...reach, root: copy.root, stopsAt: plant.caughtBy });
    const broken = new Set(reports.flatMap(({ violations }) => violations.map(({ kind }) => kind)));
    const signed = reports.reduce((sum, { payments }) => sum + payments.signed, 0);
    const asked = reports.reduce((sum, { payments }) => sum + payments.asked, 0);
    return {
      isCaught: plant.caughtBy.some((kind) => broken.has(kind)),
      words:
        `${[...broken].join(', ') || 'nothing broke'}; ` +
        `seed ${options.seed}, run ${(reports.at(-1)?.run ?? -1) + 1}, ${signed} payments, ${asked} completions`,
    };
  } finally {
    copy.remove();
  }
}

/** Runs the test that must fail in a copy with the bug. */
async function huntByTest(plant: TestPlant): Promise<Hunt> {
  const copy = makePlantedCopy(plant, { withTests: true });
  try {
    const { file, name } = plant.caughtByTest;
    const result = await runTest(copy.root, plant.caughtByTest);
    return { isCaught: result === 'failed', words: `${file} ${result}: ${name}` };
  } finally {
    copy.remove();
  }
}
