/** `npm run mutations`: see README.md beside this file. */
import { parseArgs } from 'node:util';
import { catchByName, type Caught, failingAnyway, search, wordsOf } from './catch.ts';
import type { Mutation } from './mutation.ts';
import { mutations } from './mutations.ts';
import { openRelatedTests } from './related-tests.ts';

const say = (line: string): void => console.log(line);

function readOptions() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      full: { type: 'boolean', default: false },
      nearest: { type: 'string' },
    },
  });
  const unknown = values.only.find((name) => !mutations.some((mutation) => mutation.name === name));
  if (unknown !== undefined)
    throw new Error(`--only is one of ${mutations.map(({ name }) => name).join(', ')}`);
  const isChosen = ({ name }: Mutation): boolean => values.only.length === 0 || values.only.includes(name);
  return {
    chosen: mutations.filter(isChosen),
    isFull: values.full,
    nearest: Number(values.nearest ?? Infinity),
  };
}

/** Whether a test catches each of them. */
async function run({ chosen, isFull, nearest }: ReturnType<typeof readOptions>): Promise<boolean> {
  const catchers = chosen.flatMap(({ caughtBy }) => caughtBy ?? []);
  const failing = isFull ? [] : await failingAnyway(catchers);
  for (const catcher of failing) say(`FAILS WITHOUT A MUTATION  ${wordsOf(catcher)}`);
  const related = isFull ? await openRelatedTests() : undefined;
  let missed = 0;
  for (const mutation of chosen) {
    const sinceMs = performance.now();
    const caught = related
      ? await search(mutation, (await related.of(filesOf(mutation))).slice(0, nearest))
      : await catchByName(mutation);
    if (caught.kind === 'not_caught') missed += 1;
    say(`${lineOf(mutation, caught)}, after ${Math.round((performance.now() - sinceMs) / 1_000)} s`);
  }
  await related?.close();
  say(`${chosen.length - missed} of ${chosen.length} are caught`);
  return failing.length + missed === 0;
}

function filesOf({ edits }: Mutation): readonly string[] {
  return edits.map(({ file }) => file);
}

function lineOf({ name }: Mutation, caught: Caught): string {
  return caught.kind === 'caught'
    ? `caught  ${name}: ${wordsOf(caught.by)}`
    : `NOT CAUGHT  ${name}: ${caught.cause}`;
}

try {
  process.exitCode = (await run(readOptions())) ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 64;
}
