import { type Bug, makePlantedCopy } from '../support/planted-copy.ts';
import { patternOf, runTests } from '../support/run-test.ts';
import type { Catcher, Mutation } from './mutation.ts';
import type { RelatedTest } from './related-tests.ts';

const unmutated: Bug = { name: 'unmutated', edits: [] };

export type Caught =
  | { readonly kind: 'caught'; readonly by: Catcher }
  | { readonly kind: 'not_caught'; readonly cause: string };

/** Whether the test fails that is named for a mutation. */
export async function catchByName(mutation: Mutation): Promise<Caught> {
  const { caughtBy } = mutation;
  if (!caughtBy) return { kind: 'not_caught', cause: 'no test is named for it: --full looks for one' };
  const by = await withCopy(mutation, (root) => runCatchers(root, [caughtBy]));
  return by.failed.length === 1
    ? { kind: 'caught', by: caughtBy }
    : { kind: 'not_caught', cause: `${wordsOf(caughtBy)} does not fail` };
}

/** The tests of these that do not pass without any mutation: that they fail proves nothing. */
export async function failingAnyway(catchers: readonly Catcher[]): Promise<readonly Catcher[]> {
  if (catchers.length === 0) return [];
  const { passed } = await withCopy(unmutated, (root) => runCatchers(root, catchers));
  return catchers.filter((catcher) => !passed.includes(catcher));
}

/** This many files run before it is known whether one fails. */
const filesOfRun = 4;

/** Looks for the first test that fails with a mutation and passes without it, among those that import the file. */
export async function search(mutation: Mutation, related: readonly RelatedTest[]): Promise<Caught> {
  const by = await withCopy(mutation, (root) => findFailing(root, related));
  if (!by)
    return { kind: 'not_caught', cause: `none of ${related.length} files of tests that import it fails` };
  const isFailing = (await failingAnyway([by])).length > 0;
  return isFailing
    ? { kind: 'not_caught', cause: `${wordsOf(by)} fails without it too` }
    : { kind: 'caught', by };
}

async function findFailing(root: string, related: readonly RelatedTest[]): Promise<Catcher | undefined> {
  for (let from = 0; from < related.length; from += filesOfRun) {
    const files = related.slice(from, from + filesOfRun);
    const tested = await runTests(root, ['run', ...files.map(({ file }) => file), '--bail=1']);
    const failed = tested.find(({ status }) => status === 'failed');
    const of = files.find(({ file }) => file === failed?.name);
    const test = failed?.tests.find(({ status }) => status === 'failed');
    if (of) return { ...of, ...(test && { name: test.title }) };
  }
  return undefined;
}

export function wordsOf({ file, name }: Catcher): string {
  return name === undefined ? file : `${file}: ${name}`;
}

async function withCopy<T>(bug: Bug, use: (root: string) => Promise<T>): Promise<T> {
  const copy = makePlantedCopy(bug, { withTests: true });
  try {
    return await use(copy.root);
  } finally {
    copy.remove();
  }
}

interface Results {
  readonly passed: readonly Catcher[];
  readonly failed: readonly Catcher[];
}

/** Runs these tests alone. */
async function runCatchers(root: string, catchers: readonly Catcher[]): Promise<Results> {
  const files = [...new Set(catchers.map(({ file }) => file))];
  const names = catchers.map(({ name }) => name);
  const isWhole = names.includes(undefined);
  const pattern = isWhole ? [] : ['-t', patternOf(names.filter((name) => name !== undefined))];
  const tested = await runTests(root, ['run', ...files, ...pattern]);
  const statusOf = ({ file, name }: Catcher): string | undefined => {
    const of = tested.find((one) => one.name === file);
    if (name === undefined) return of?.status;
    const statuses = of?.tests.filter(({ title }) => title === name).map(({ status }) => status) ?? [];
    return ['failed', 'passed'].find((status) => statuses.includes(status));
  };
  return {
    passed: catchers.filter((catcher) => statusOf(catcher) === 'passed'),
    failed: catchers.filter((catcher) => statusOf(catcher) === 'failed'),
  };
}
