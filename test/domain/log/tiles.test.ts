import fc from 'fast-check';
import { expect, test } from 'vitest';
import { leafHash, nodesOf, RightEdge, type TreeNode } from '../../../src/domain/log/merkle.ts';
import {
  entryBundle,
  isWithin,
  parseTilePath,
  placeOf,
  TileGrowth,
  tilePath,
  TileTree,
} from '../../../src/domain/log/tiles.ts';

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

test('every node of a tree can be made from the tiles it grew, in pieces of any length', () => {
  const tiles = new Map<string, Buffer>();
  const nodes = new Map<string, [TreeNode, Buffer]>();
  const edge = new RightEdge();
  let leaf = 0;
  for (const piece of [1, 254, 1, 1, 300, 512, 66_000]) {
    const growth = new TileGrowth();
    for (const end = leaf + piece; leaf < end; leaf++) {
      edge.append(leafHash(Buffer.from(String(leaf))), (node, hash) => {
        growth.add(node, hash);
        nodes.set(`${node.level}/${node.index}`, [node, hash]);
      });
    }
    for (const { level, tile, offset, bytes } of growth.rows) {
      const before = tiles.get(`${level}/${tile}`) ?? Buffer.alloc(0);
      expect(before.length).toBe(offset * 32);
      tiles.set(`${level}/${tile}`, Buffer.concat([before, bytes]));
    }
  }
  expect(nodesOf({ from: 0, to: leaf })[0]?.level).toBe(16);
  const trees = new Map([...tiles].map(([place, bytes]) => [place, new TileTree(bytes)]));
  const looked = [...nodes.values()].filter(([{ index, level }]) => index % 3 === 0 || level > 5);
  for (const [node, hash] of looked) {
    const { level, tile } = placeOf(node);
    expect(trees.get(`${level}/${tile}`)!.hash(node)).toEqual(hash);
  }
});

test('an entry bundle has the length before each leaf', () => {
  expect(entryBundle([Buffer.from('ab'), Buffer.from('')])).toEqual(Buffer.from([0, 2, 0x61, 0x62, 0, 0]));
  expect(entryBundle([Buffer.alloc(65_536)])).toBeUndefined();
});
