import { expect, test } from 'vitest';
import { ownPath, pathWith } from '../../../src/web/pages/own-path.ts';

const own = 'https://books.example';

test.each(['/', '/keys', '/keys/new?name=a%20b&cap=1', '/account#x'])(
  '%s is a path of the same site',
  (path) => {
    expect(ownPath(path, own)).toBe(path.replace(/#.*/, ''));
  },
);

test.each([
  undefined,
  null,
  '',
  'keys',
  '//other.example',
  '/\\other.example',
  '/..//other.example',
  '/./\t/other.example',
  'https://other.example/',
  'https:other.example',
  'javascript:alert(1)',
  '\u202e/keys',
  `/${'x'.repeat(5_000)}`,
])('%j leads to the first page', (path) => {
  expect(ownPath(path, own)).toBe('/');
});

test('a query is added to a path with and without one', () => {
  expect(pathWith('/keys', { notice: 'x', empty: '', none: undefined })).toBe('/keys?notice=x');
  expect(pathWith('/keys?a=1', { b: '2' })).toBe('/keys?a=1&b=2');
});
