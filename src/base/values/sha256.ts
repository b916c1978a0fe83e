import { hash } from 'node:crypto';
import type { Hex } from './primitives.ts';

export function sha256(bytes: Uint8Array | string): Hex {
  return `0x${hash('sha256', bytes, 'hex')}`;
}
