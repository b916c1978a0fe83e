import { randomFillSync } from 'node:crypto';
import type { Hex } from '../values/primitives.ts';

const wordBytes = 32;
/** Drawn for 128 words in one call: a draw of one word costs more than all else that a salt takes. */
const drawn = Buffer.alloc(128 * wordBytes);
let usedBytes = drawn.length;

/** 32 random bytes of the system's source. Each byte is given out once. */
export function randomHex32(): Hex {
  if (usedBytes === drawn.length) {
    randomFillSync(drawn);
    usedBytes = 0;
  }
  const hex = drawn.toString('hex', usedBytes, usedBytes + wordBytes);
  drawn.fill(0, usedBytes, usedBytes + wordBytes);
  usedBytes += wordBytes;
  return `0x${hex}`;
}
