import { hash } from 'node:crypto';

/** RFC 6962 trees over SHA-256. Leaves are counted from 0; sizes and indexes are below 2^53. */
export const hashBytes = 32;

const nodeInput = Buffer.alloc(1 + 2 * hashBytes);
nodeInput[0] = 1;
let leafInput = Buffer.alloc(4_096);

/** One call of the hash function, not three: hashing dominates the time for a million leaves. */
export function leafHash(leaf: Uint8Array): Buffer {
  if (leaf.length >= leafInput.length) leafInput = Buffer.alloc(2 * leaf.length);
  leafInput.set(leaf, 1);
  return hash('sha256', leafInput.subarray(0, leaf.length + 1), 'buffer');
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  nodeInput.set(left, 1);
  nodeInput.set(right, 1 + hashBytes);
  return hash('sha256', nodeInput, 'buffer');
}

/** A row of hashes from the row below it, each from two; an odd last one is omitted. One buffer, not one per hash. */
export function rowAbove(below: Buffer): Buffer {
  const row = Buffer.alloc(Math.floor(below.length / (2 * hashBytes)) * hashBytes);
  for (let at = 0; at < row.length; at += hashBytes) {
    below.copy(nodeInput, 1, 2 * at, 2 * (at + hashBytes));
    row.write(hash('sha256', nodeInput, 'binary'), at, 'latin1');
  }
  return row;
}

/** The root of a tree without leaves. */
export function emptyRoot(): Buffer {
  return hash('sha256', '', 'buffer');
}

/** A perfect subtree: the node `index` of `level`, over the leaves from `index × 2^level` on. */
export interface TreeNode {
  readonly level: number;
  readonly index: number;
}

/**
 * The right edge of a growing tree: the roots of its perfect subtrees, the widest first. It is all that appending needs: at
 * most 53 hashes for any tree.
 */
export class RightEdge {
  #size: number;
  readonly #hashes: Buffer[];

  /** @throws RangeError if the hashes are not those of a tree of this size */
  constructor(size = 0, hashes: readonly Buffer[] = []) {
    if (hashes.length !== ones(size) || hashes.some(({ length }) => length !== hashBytes))
      throw new RangeError(`the right edge of a tree of ${size} is not ${hashes.length} hashes`);
    this.#size = size;
    this.#hashes = [...hashes];
  }

  /** Reads the output of {@link bytes}. */
  static from(size: number, bytes: Buffer): RightEdge {
    return new RightEdge(size, splitHashes(bytes));
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#hashes);
  }

  /** Adds a leaf by its hash. */
  append(leaf: Buffer): void {
    let node = leaf;
    for (let index = this.#size; index % 2 === 1; index = (index - 1) / 2)
      node = nodeHash(this.#hashes.pop() ?? node, node);
    this.#hashes.push(node);
    this.#size += 1;
  }

  root(): Buffer {
    return foldRight(this.#hashes) ?? emptyRoot();
  }
}

export function splitHashes(bytes: Buffer): Buffer[] {
  if (bytes.length % hashBytes !== 0) throw new RangeError(`${bytes.length} bytes are not whole hashes`);
  return Array.from({ length: bytes.length / hashBytes }, (_, i) =>
    bytes.subarray(i * hashBytes, (i + 1) * hashBytes),
  );
}

/** A range of leaves, `from` included and `to` not; its hash is one entry of a proof. */
export interface LeafRange {
  readonly from: number;
  readonly to: number;
}

/** The ranges whose hashes prove that a leaf is at `index` in a tree of `size`, from the leaf up. */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  if (!(index >= 0 && index < size)) throw new RangeError(`no leaf ${index} in a tree of ${size}`);
  const ranges: LeafRange[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const middle = from + splitOf(to - from);
    if (index < middle) {
      ranges.push({ from: middle, to });
      to = middle;
    } else {
      ranges.push({ from, to: middle });
      from = middle;
    }
  }
  return ranges.toReversed();
}

/** The ranges whose hashes prove that a tree of `old` leaves is the beginning of one of `size`. */
export function consistencyRanges(old: number, size: number): LeafRange[] {
  if (!(old >= 1 && old <= size)) throw new RangeError(`no tree of ${old} within one of ${size}`);
  const ranges: LeafRange[] = [];
  let [from, to] = [0, size];
  while (old !== to) {
    const middle = from + splitOf(to - from);
    if (old <= middle) {
      ranges.push({ from: middle, to });
      to = middle;
    } else {
      ranges.push({ from, to: middle });
      from = middle;
    }
  }
  // the verifier knows the old root already, if that is a node of the tree
  if (from > 0) ranges.push({ from, to });
  return ranges.toReversed();
}

/** The perfect subtrees that a range consists of, the widest first. Ranges of proofs begin where these may. */
export function nodesOf({ from, to }: LeafRange): TreeNode[] {
  const nodes: TreeNode[] = [];
  let at = from;
  while (at < to) {
    let level = Math.floor(Math.log2(to - at));
    if (2 ** level > to - at) level -= 1;
    nodes.push({ level, index: at / 2 ** level });
    at += 2 ** level;
  }
  return nodes;
}

/** The hash of a range, from its nodes' hashes. */
export function rangeHash(nodes: readonly Buffer[]): Buffer {
  const found = foldRight(nodes);
  if (!found) throw new RangeError('a range without nodes');
  return found;
}

/** Whether an inclusion proof leads from a leaf's hash to the root. */
export function isIncluded(
  { index, size, root }: { readonly index: number; readonly size: number; readonly root: Buffer },
  leaf: Buffer,
  proof: readonly Buffer[],
): boolean {
  if (!(index >= 0 && index < size)) return false;
  let [at, last] = [index, size - 1];
  let node = leaf;
  for (const sibling of proof) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      node = nodeHash(sibling, node);
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      node = nodeHash(node, sibling);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && node.equals(root);
}

function foldRight(hashes: readonly Buffer[]): Buffer | undefined {
  let root: Buffer | undefined;
  for (const left of hashes.toReversed()) root = root ? nodeHash(left, root) : left;
  return root;
}

/** The largest power of two below a size above 1. */
function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

function half(value: number): number {
  return Math.floor(value / 2);
}

function ones(value: number): number {
  let count = 0;
  for (let rest = value; rest > 0; rest = half(rest)) count += rest % 2;
  return count;
}
