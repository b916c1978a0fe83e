import path from 'node:path';
import { createVitest } from 'vitest/node';
import { repositoryRoot } from '../support/planted-copy.ts';
import type { Tier } from './mutation.ts';

export interface RelatedTest {
  readonly tier: Tier;
  readonly file: string;
}

export interface RelatedTests {
  /** All test files that import any of the files, through others or when they run: the rigs last, before them the nearest first. */
  of(files: readonly string[]): Promise<readonly RelatedTest[]>;
  close(): Promise<void>;
}

/** Reads the imports of all tests once, as `vitest related` does for every run. */
export async function openRelatedTests(): Promise<RelatedTests> {
  const vitest = await createVitest('test', {
    watch: false,
    root: repositoryRoot,
    reporters: [],
    // the properties' files are among the tests
    project: ['tests', 'rigs'],
  });
  return {
    of: async (files) => {
      vitest.config.related = files.map((file) => path.join(repositoryRoot, file));
      const related = await vitest.getRelevantTestSpecifications();
      const tests = related.map(({ moduleId, project }) => ({
        tier: project.name === 'rigs' ? ('rigs' as const) : ('tests' as const),
        file: path.relative(repositoryRoot, moduleId),
      }));
      const rank = ({ tier, file }: RelatedTest): number =>
        tier === 'rigs' ? -1 : Math.max(...files.map((of) => nearness(of, file)));
      return tests.toSorted((a, b) => rank(b) - rank(a));
    },
    close: () => vitest.close(),
  };
}

/** How many words of its path a test shares with a file; one that mirrors the file comes before all others. */
function nearness(file: string, test: string): number {
  const words = wordsOf(test);
  const shared = wordsOf(file).filter((word) => words.includes(word)).length;
  return test === file.replace(/^src\/(.*)\.ts$/, 'test/$1.test.ts') ? shared + 1 : shared;
}

function wordsOf(file: string): readonly string[] {
  return file
    .replace(/^(src|test)\//, '')
    .replace(/(\.test|\.rig)?\.ts$/, '')
    .split(/[/-]/);
}
