import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hashBytes, leafHash, rowAbove, type TreeNode } from '../../../../src/base/values/log/merkle.ts';
import {
  entryBundle,
  isWithin,
  parseTilePath,
  placeOf,
  tilePath,
  TileTree,
} from '../../../../src/base/values/log/tiles.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

test('tile paths match the examples of the specification', () => {
  expect(tilePath({ level: 0, index: 1_234_067, width: 256 })).toBe('tile/0/x001/x234/067');
  expect(tilePath({ level: 0, index: 273, width: 112 })).toBe('tile/0/273.p/112');
  expect(tilePath({ level: 'entries', index: 0, width: 1 })).toBe('tile/entries/000.p/1');
});

test('a path is read back, and every tile has one path', () => {
  const level = fc.oneof(fc.nat(6), fc.constant('entries' as const));
  fc.assert(
    fc.property(level, fc.nat(2 ** 31 - 1), fc.integer({ min: 1, max: 256 }), (at, index, width) => {
      const tile = { level: at, index, width };
      expect(parseTilePath(tilePath(tile))).toEqual(tile);
    }),
    propertyRuns(),
  );
  for (const path of [
    'tile/0/x000/001',
    'tile/00/001',
    'tile/0/1',
    'tile/0/001.p/0',
    'tile/0/001.p/256',
    'tile/0/001.p/01',
    'tile/7/000',
    'tile/0/../001',
    'tile/data/001',
    'tile/0/001/',
  ])
    expect([path, parseTilePath(path)]).toEqual([path, undefined]);
});

const has = (level: number, index: number, width: number) => isWithin({ level, index, width }, 70_000);

test("the specification's tree of 70,000 has exactly these tiles", () => {
  expect([has(0, 272, 256), has(0, 273, 112), has(0, 273, 113)]).toEqual([true, true, false]);
  expect([has(1, 0, 256), has(1, 1, 17), has(1, 1, 18)]).toEqual([true, true, false]);
  expect([has(2, 0, 1), has(2, 0, 2), has(3, 0, 1)]).toEqual([true, false, false]);
});

test('every node of a tree can be made from its tiles', () => {
  const leaf = 67_069;
  const rows: Buffer[] = [
    Buffer.concat(Array.from({ length: leaf }, (_, i) => leafHash(Buffer.from(String(i))))),
  ];
  while (rows.at(-1)!.length > hashBytes) rows.push(rowAbove(rows.at(-1)!));
  expect(rows).toHaveLength(17);
  const hashAt = ({ level, index }: TreeNode) =>
    rows[level]!.subarray(hashBytes * index, hashBytes * (index + 1));
  const trees = new Map<string, TileTree>();
  for (const [index, row] of rows.entries())
    for (let tile = 0; index % 8 === 0 && tile * 8_192 < row.length; tile++)
      trees.set(`${index / 8}/${tile}`, new TileTree(row.subarray(tile * 8_192, (tile + 1) * 8_192)));
  for (const [level, row] of rows.entries())
    for (let index = 0; index < row.length / hashBytes; index += level > 5 ? 1 : 3) {
      const { level: tileLevel, tile } = placeOf({ level, index });
      expect(trees.get(`${tileLevel}/${tile}`)!.hash({ level, index })).toEqual(hashAt({ level, index }));
    }
});

test('an entry bundle has the length before each leaf', () => {
  expect(entryBundle([Buffer.from('ab'), Buffer.from('')])).toEqual(Buffer.from([0, 2, 0x61, 0x62, 0, 0]));
  expect(entryBundle([Buffer.alloc(65_536)])).toBeUndefined();
});
