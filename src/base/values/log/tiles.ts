import { hashBytes, rowAbove, type TreeNode } from './merkle.ts';

/** C2SP tlog-tiles: rows of up to 256 hashes, each row of a level above made of the full ones below. */
export const tileWidth = 256;
const tileHeight = 8;
const maxTileLevel = 6;

/** Part of a tile level: the first `width` hashes of tile `index`. */
export interface Tile {
  /** `entries`: the leaves themselves instead of their hashes. */
  readonly level: number | 'entries';
  readonly index: number;
  readonly width: number;
}

/** The path below a log's prefix: `tile/0/x001/234.p/56`. */
export function tilePath({ level, index, width }: Tile): string {
  const digits = String(index);
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, '0');
  const parts = padded.match(/\d{3}/g) ?? [];
  const path = parts.map((part, i) => (i === parts.length - 1 ? part : `x${part}`)).join('/');
  return `tile/${level}/${path}${width === tileWidth ? '' : `.p/${width}`}`;
}

/** Reads such a path. Undefined for any other spelling: every tile has exactly one path. */
export function parseTilePath(path: string): Tile | undefined {
  const match = /^tile\/(entries|\d{1,2})\/((?:x\d{3}\/){0,4}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/.exec(path);
  if (!match) return undefined;
  const [, name = '', digits = '', partial] = match;
  const tile: Tile = {
    level: name === 'entries' ? name : Number(name),
    index: Number(digits.replaceAll(/[x/]/g, '')),
    width: partial === undefined ? tileWidth : Number(partial),
  };
  if (tile.level !== 'entries' && tile.level > maxTileLevel) return undefined;
  return tilePath(tile) === path ? tile : undefined;
}

/** Whether a tree of this size has that part. */
export function isWithin({ level, index, width }: Tile, size: number): boolean {
  const hashes = Math.floor(size / tileWidth ** (level === 'entries' ? 0 : level));
  return index * tileWidth + width <= hashes;
}

/** The place of a node's hash: the level and tile that store it or from which it is computed, and the hashes it covers. */
export function placeOf({ level, index }: TreeNode): {
  readonly level: number;
  readonly tile: number;
  readonly offset: number;
  readonly count: number;
} {
  const tileLevel = Math.floor(level / tileHeight);
  const count = 2 ** (level % tileHeight);
  const first = index * count;
  return {
    level: tileLevel,
    tile: Math.floor(first / tileWidth),
    offset: first % tileWidth,
    count,
  };
}

/** A tile with the rows above it, each made once: proofs that meet in a tile share them. */
export class TileTree {
  readonly #rows: Buffer[];

  constructor(bytes: Buffer) {
    this.#rows = [bytes];
  }

  /** @throws RangeError for a node that the tile does not hold yet */
  hash(node: TreeNode): Buffer {
    const height = node.level % tileHeight;
    const at = (placeOf(node).offset / 2 ** height) * hashBytes;
    const found = this.#row(height).subarray(at, at + hashBytes);
    if (found.length < hashBytes) throw new RangeError('the tile ends before the node');
    return found;
  }

  #row(height: number): Buffer {
    return (this.#rows[height] ??= rowAbove(this.#row(height - 1)));
  }
}

/** Leaves as an entry bundle: each after its length in two bytes. Undefined if one is too long for that. */
export function entryBundle(leaves: readonly Buffer[]): Buffer | undefined {
  if (leaves.some(({ length }) => length > 0xffff)) return undefined;
  return Buffer.concat(
    leaves.flatMap((leaf) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(leaf.length);
      return [length, leaf];
    }),
  );
}
