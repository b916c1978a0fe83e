import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { applyEdit, repositoryRoot } from '../support/planted-copy.ts';
import { mutations } from './mutations.ts';

const read = (file: string): string => readFileSync(path.join(repositoryRoot, file), 'utf8');

test.each(mutations)('the mutation $name still fits: each of its edits exactly once', ({ edits }) => {
  for (const edit of edits) expect(applyEdit(read(edit.file), edit)).not.toBe(read(edit.file));
});

const directoryOf = (file: string): string => file.split('/', 2).join('/');

test('every directory of src has a mutation, and no two have the same name', () => {
  const dirs = globSync('src/*/**/*.ts', { cwd: repositoryRoot }).map(directoryOf);
  const mutated = mutations.flatMap(({ edits }) => edits.map(({ file }) => directoryOf(file)));
  expect([...new Set(mutated)].toSorted()).toEqual([...new Set(dirs)].toSorted());
  expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length);
});

test.each(mutations)('a test that exists is named for the mutation $name', ({ caughtBy }) => {
  expect(caughtBy?.file).toMatch(caughtBy?.tier === 'rigs' ? /\.rig\.ts$/ : /\.test\.ts$/);
  expect(titlesIn(read(caughtBy?.file ?? '')).some((title) => title.test(caughtBy?.name ?? ''))).toBe(true);
});

/** Of the quoted texts of a file: a value that `test.each` or a template fills in may be anything. */
function titlesIn(text: string): readonly RegExp[] {
  const quoted = [...text.matchAll(/(['"`])((?:\\.|(?!\1)[^\n\\])+)\1/g)].map(([, , inner = '']) => inner);
  return quoted.map((title) => {
    const parts = title.replaceAll(/\\(.)/g, '$1').split(/\$\{[^}]*\}|\$[\w.]+|%[a-z]/);
    return new RegExp(`^${parts.map((part) => RegExp.escape(part)).join('.*')}$`);
  });
}
