import { hashBytes, RightEdge, rowAbove } from '../../../base/values/log/merkle.ts';
import { tileWidth } from '../../../base/values/log/tiles.ts';

/** The hashes of the filled part of a tile. */
export interface StoredTile {
  readonly level: number;
  readonly tile: number;
  readonly hashes: Buffer;
}

/** The tree as the database has it. */
export interface StoredTree {
  readonly size: number;
  readonly edge: Buffer;
}

/**
 * Computes the tree over the sealed events, and compares the database's parts of it: the tiles above those of the leaves, and the right
 * edge. The tiles of the leaves are compared with each event. It keeps one hash for 256 events.
 */
export class LogComparison {
  readonly #tree: StoredTree;
  readonly #edge = new RightEdge();
  /** Of the tile of leaves that is being filled. */
  readonly #leaves = Buffer.alloc(tileWidth * hashBytes);
  /** The hashes of level 1. */
  readonly #roots: Buffer[] = [];

  constructor(tree: StoredTree) {
    this.#tree = tree;
  }

  /** Takes the hash of the next event, as far as the events are sealed. */
  append(hash: Buffer): void {
    const at = this.#edge.size;
    if (at >= this.#tree.size) return;
    this.#edge.append(hash);
    this.#leaves.set(hash, (at % tileWidth) * hashBytes);
    if ((at + 1) % tileWidth === 0) this.#roots.push(rootOf(this.#leaves));
  }

  /** What is wrong with the edge; undefined if it is that of the events. */
  edgeWrong(): string | undefined {
    if (this.#edge.size < this.#tree.size) return undefined;
    return this.#edge.bytes.equals(this.#tree.edge)
      ? undefined
      : `log_tree: the right edge of the tree of ${this.#tree.size} events is another one`;
  }

  /** How many hashes each level of tiles has, from that of the leaves up. */
  levels(): number[] {
    const counts: number[] = [];
    for (let count = this.#tree.size; count > 0; count = Math.floor(count / tileWidth)) counts.push(count);
    return counts;
  }

  /** The tiles above those of the leaves, in order. */
  *tiles(): Generator<StoredTile> {
    let hashes = this.#roots;
    for (let level = 1; hashes.length > 0; level += 1) {
      const above: Buffer[] = [];
      for (let tile = 0; tile * tileWidth < hashes.length; tile += 1) {
        const row = Buffer.concat(hashes.slice(tile * tileWidth, (tile + 1) * tileWidth));
        yield { level, tile, hashes: row };
        if (row.length === tileWidth * hashBytes) above.push(rootOf(row));
      }
      hashes = above;
    }
  }
}

function rootOf(row: Buffer): Buffer {
  let above = row;
  while (above.length > hashBytes) above = rowAbove(above);
  return above;
}
