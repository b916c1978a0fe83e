import { isConsistent } from '../../../support/log.ts';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  consistencyRanges,
  emptyRoot,
  inclusionRanges,
  isIncluded,
  leafHash,
  type LeafRange,
  nodesOf,
  rangeHash,
  rowAbove,
  splitHashes,
  RightEdge,
} from '../../../../src/base/values/log/merkle.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const sha = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest();

/** A direct implementation of RFC 6962, section 2.1. */
function naiveRoot(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return sha();
  if (leaves.length === 1) return sha(Buffer.of(0), leaves[0]!);
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return sha(Buffer.of(1), naiveRoot(leaves.slice(0, k)), naiveRoot(leaves.slice(k)));
}

/** The inputs and roots that Certificate Transparency's own implementations are tested with. */
const vectors = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
].map((hex) => Buffer.from(hex, 'hex'));
const roots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

const leavesOf = (size: number) => Array.from({ length: size }, (_, i) => Buffer.from(`leaf ${i}`));

function grow(leaves: readonly Buffer[], nodes = new Map<string, Buffer>()): RightEdge {
  const edge = new RightEdge();
  const hashes = leaves.map((leaf) => leafHash(leaf));
  for (const hash of hashes) edge.append(hash);
  let row: Buffer = Buffer.concat(hashes);
  for (let level = 0; row.length > 0; level += 1, row = rowAbove(row))
    for (const [index, hash] of splitHashes(row).entries()) nodes.set(`${level}/${index}`, hash);
  return edge;
}

const proofFrom = (ranges: readonly LeafRange[], nodes: ReadonlyMap<string, Buffer>) =>
  ranges.map((range) => rangeHash(nodesOf(range).map(({ level, index }) => nodes.get(`${level}/${index}`)!)));

test("the tree has the roots of Certificate Transparency's test vectors", () => {
  expect(emptyRoot().toString('hex')).toBe(roots[0]);
  const found = roots.map((_, size) => grow(vectors.slice(0, size)).root().toString('hex'));
  expect(found).toEqual(roots);
});

test('the proofs for inclusion of leaf 5 in 8 and consistency of 6 in 8 match those of Certificate Transparency', () => {
  const nodes = new Map<string, Buffer>();
  grow(vectors, nodes);
  const hex = (ranges: readonly LeafRange[]) => proofFrom(ranges, nodes).map((hash) => hash.toString('hex'));
  expect(hex(inclusionRanges(5, 8))).toEqual([
    'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
    'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  ]);
  expect(hex(consistencyRanges(6, 8))).toEqual([
    '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
    'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  ]);
});

test('the right edge has the root that RFC 6962 defines, also after it was serialized and restored', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 70 }), fc.nat(70), (raw, cut) => {
      const leaves = raw.map((bytes) => Buffer.from(bytes));
      const first = grow(leaves.slice(0, cut));
      const again = RightEdge.from(first.size, first.bytes);
      for (const leaf of leaves.slice(cut)) again.append(leafHash(leaf));
      expect(again.size).toBe(leaves.length);
      expect(again.root()).toEqual(naiveRoot(leaves));
    }),
    propertyRuns(50),
  );
});

test('an edge that does not belong to its size is refused', () => {
  expect(() => new RightEdge(3, [leafHash(Buffer.of(1))])).toThrow(RangeError);
  expect(() => RightEdge.from(1, Buffer.alloc(31))).toThrow(RangeError);
});

test('every inclusion proof up to 40 leaves verifies, and only for its own leaf', () => {
  for (let size = 1; size <= 40; size++) {
    const leaves = leavesOf(size);
    const nodes = new Map<string, Buffer>();
    const root = grow(leaves, nodes).root();
    for (let index = 0; index < size; index++) {
      const proof = proofFrom(inclusionRanges(index, size), nodes);
      const leaf = leafHash(leaves[index]!);
      expect(isIncluded({ index, size, root }, leaf, proof)).toBe(true);
      expect(isIncluded({ index: (index + 1) % size, size, root }, leaf, proof)).toBe(size === 1);
      expect(isIncluded({ index, size, root }, leafHash(Buffer.of(9)), proof)).toBe(false);
      expect(isIncluded({ index, size, root }, leaf, [...proof, root])).toBe(false);
      expect(isIncluded({ index, size, root }, leaf, proof.slice(1))).toBe(size === 1);
    }
  }
});

test('every consistency proof up to 40 leaves verifies, and not for a forked history', () => {
  const leaves = leavesOf(40);
  const rootOf = (size: number) => naiveRoot(leaves.slice(0, size));
  for (let size = 1; size <= 40; size++) {
    const nodes = new Map<string, Buffer>();
    grow(leaves.slice(0, size), nodes);
    for (let old = 1; old <= size; old++) {
      const proof = proofFrom(consistencyRanges(old, size), nodes);
      const next = { size, root: rootOf(size) };
      expect(isConsistent({ size: old, root: rootOf(old) }, next, proof)).toBe(true);
      const forked = naiveRoot([...leaves.slice(0, old - 1), Buffer.from('another')]);
      expect(isConsistent({ size: old, root: forked }, next, proof)).toBe(false);
    }
  }
});

test('a request for a proof outside the tree throws a RangeError', () => {
  expect(() => inclusionRanges(8, 8)).toThrow(RangeError);
  expect(() => consistencyRanges(0, 8)).toThrow(RangeError);
  expect(() => consistencyRanges(9, 8)).toThrow(RangeError);
});
