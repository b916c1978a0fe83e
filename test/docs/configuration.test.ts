import { expect, test } from 'vitest';
import { chatShape } from '../../src/base/config/chat.ts';
import { gatewayShape, jobsShape, jobsTables, tables } from '../../src/base/config/root.ts';
import { isReloadable } from '../../src/base/config/table.ts';
import { readPage } from '../support/pages.ts';

const { text } = readPage('docs/configuration.md');
const root = { ...gatewayShape, ...jobsShape, ...jobsTables, ...tables };

test('docs/configuration.md names every key of the top level', () => {
  const missing = Object.keys(root).filter((key) => !new RegExp(String.raw`[\`[]${key}[\]\`.]`).test(text));
  expect(missing).toEqual([]);
});

test('docs/configuration.md lists exactly the keys that a reload changes', () => {
  const [, section = ''] = /## Reload[^]*?with a reload:\n([^]*?)\n\nEvery other/.exec(text) ?? [];
  const listed = [...section.matchAll(/`([a-z_0-9]+)`/g)].map(([, key = '']) => key);
  const reloadable = Object.entries({ ...root, ...chatShape }).flatMap(([key, schema]) =>
    isReloadable(schema) ? [key] : [],
  );
  expect(listed.toSorted()).toEqual(reloadable.toSorted());
});
