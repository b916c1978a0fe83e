import { createHash } from 'node:crypto';

/** A deterministic random source: the same seed gives the same numbers. */
export interface Random {
  /** At least 0, below 1. */
  next(): number;
  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
  shuffled<T>(list: readonly T[]): T[];
  hex32(): `0x${string}`;
  /** An independent source for a part of the run, so that draws of other parts do not change it. */
  fork(name: string): Random;
}

export function createRandom(seed: string): Random {
  const digest = createHash('sha256').update(seed).digest();
  const next = mulberry(digest.readUInt32LE(0) ^ digest.readUInt32LE(4));
  const between = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  const pick = <T>(list: readonly T[]): T => {
    const picked = list[between(0, list.length - 1)];
    if (picked === undefined) throw new RangeError('nothing to pick from');
    return picked;
  };
  return {
    next,
    between,
    pick,
    chance: (probability) => next() < probability,
    shuffled(list) {
      const keyed = list.map((item) => ({ item, key: next() }));
      return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
    },
    hex32: () =>
      `0x${Array.from({ length: 32 }, () => between(0, 255).toString(16).padStart(2, '0')).join('')}`,
    fork: (name) => createRandom(`${seed}/${name}`),
  };
}

/** Mulberry32: small, and good enough for fault injection. */
function mulberry(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
