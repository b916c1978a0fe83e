import { hash } from 'node:crypto';

const words = 4;

/**
 * Numbers by text, for millions of texts: a text is kept as 16 bytes of its SHA-256, outside of the heap, so that two texts are taken for one
 * with a probability of 2^-128. Takes some 24 to 48 bytes for each text.
 */
export class HashedNumbers {
  #keys = new Uint32Array(words * 1_024);
  #values = new Float64Array(1_024);
  #size = 0;

  /** 0 if none was set. */
  get(text: string): number {
    return this.#values[this.#slotOf(keyOf(text))] ?? 0;
  }

  set(text: string, value: number): void {
    if (4 * (this.#size + 1) > 3 * this.#values.length) this.#grow();
    this.#put(keyOf(text), value);
  }

  #put(key: Uint32Array, value: number): void {
    const slot = this.#slotOf(key);
    if (this.#isEmpty(slot)) this.#size += 1;
    this.#keys.set(key, words * slot);
    this.#values[slot] = value;
  }

  /** The slot of a key, or the empty one where it belongs. */
  #slotOf(key: Uint32Array): number {
    const mask = this.#values.length - 1;
    let slot = (key[0] ?? 0) & mask;
    while (!this.#isEmpty(slot) && !this.#isAt(key, slot)) slot = (slot + 1) & mask;
    return slot;
  }

  #isEmpty(slot: number): boolean {
    return this.#isAt(noKey, slot);
  }

  #isAt(key: Uint32Array, slot: number): boolean {
    const keys = this.#keys;
    const at = words * slot;
    return (
      keys[at] === key[0] && keys[at + 1] === key[1] && keys[at + 2] === key[2] && keys[at + 3] === key[3]
    );
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#keys = new Uint32Array(2 * keys.length);
    this.#values = new Float64Array(2 * values.length);
    this.#size = 0;
    for (const [at, value] of values.entries()) {
      const key = keys.subarray(words * at, words * (at + 1));
      if (key.some((word) => word !== 0)) this.#put(key, value);
    }
  }
}

const noKey = new Uint32Array(words);

function keyOf(text: string): Uint32Array {
  const digest = hash('sha256', text, 'buffer');
  return Uint32Array.from({ length: words }, (_, at) => digest.readUInt32LE(4 * at));
}
