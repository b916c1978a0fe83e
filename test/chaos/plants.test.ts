import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { applyEdit, repositoryRoot } from '../support/planted-copy.ts';
import { plants } from './plants.ts';
import { testPlants } from './test-plants.ts';

test.each([...plants, ...testPlants])(
  'the bug $name can still be planted: each of its edits fits exactly once',
  ({ edits }) => {
    for (const edit of edits) {
      const text = readFileSync(path.join(repositoryRoot, edit.file), 'utf8');
      expect(applyEdit(text, edit)).toContain(edit.replace);
    }
  },
);

test.each(testPlants)('the test that catches $name exists', ({ caughtByTest: { file, name } }) => {
  expect(readFileSync(path.join(repositoryRoot, file), 'utf8')).toContain(`test('${name}'`);
});
