import { createKeccak } from 'hash-wasm';

const hasher = await createKeccak(256);

/** keccak256. In WebAssembly: every quote and every caller's body goes through it, and in JavaScript it costs 18 times as much. */
export function keccak256(bytes: Uint8Array): Uint8Array {
  return hasher.init().update(bytes).digest('binary');
}
