import { expect, test } from 'vitest';
import { readPage } from '../support/pages.ts';

test('docs/operations/capacity.md has no measured figure that docs/benchmarks.md does not have', () => {
  const { text } = readPage('docs/operations/capacity.md');
  const measured = readPage('docs/benchmarks.md').text;
  const figures = [
    ...text.matchAll(/\b\d{1,3}(?:,\d{3})+\b|\b\d+(?= (?:µs|MiB\b|paid))|(?<=\| )[\d,]{3,}(?= \|)/g),
  ];
  const derived = new Set(['864,000', '512', '32']);
  const own = figures.map(([figure]) => figure).filter((figure) => !derived.has(figure));
  expect(own.length).toBeGreaterThan(15);
  expect(
    own.filter((figure) => !new RegExp(String.raw`(?<![\d,])${figure}(?![\d,])`).test(measured)),
  ).toEqual([]);
});
