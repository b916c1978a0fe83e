import { leafHash, RightEdge } from '../../../base/values/log/merkle.ts';

/** The roots of a growing tree: at its end, and at selected sizes before. */
export interface Roots {
  readonly size: number;
  readonly root: Buffer;
  readonly at: ReadonlyMap<number, Buffer>;
}

export class TreeRoots implements Roots {
  readonly at = new Map<number, Buffer>();
  readonly #edge: RightEdge;
  readonly #wanted: ReadonlySet<number>;

  /** @param edge of the tree that grows; by default one without leaves */
  constructor(wanted: Iterable<number>, edge = new RightEdge()) {
    this.#edge = edge;
    this.#wanted = new Set(wanted);
    this.#note();
  }

  get size(): number {
    return this.#edge.size;
  }

  get root(): Buffer {
    return this.#edge.root();
  }

  append(leaf: Buffer): void {
    this.appendHash(leafHash(leaf));
  }

  /** The same for a leaf that was hashed already. */
  appendHash(hash: Buffer): void {
    this.#edge.append(hash);
    this.#note();
  }

  #note(): void {
    if (this.#wanted.has(this.size)) this.at.set(this.size, this.root);
  }
}

const trailerStart = Buffer.from('{"counters":');

/** Whether a line of an export is not a leaf but the counters after the last one. */
export function isTrailer(line: Buffer): boolean {
  return line[2] === trailerStart[2] && line.subarray(0, trailerStart.length).equals(trailerStart);
}

/** Calls `take` with every complete line, without its line break; returns the offset after the last one. */
export function takeLines(bytes: Buffer, take: (line: Buffer) => void): number {
  let from = 0;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
    take(bytes.subarray(from, end));
    from = end + 1;
  }
  return from;
}
