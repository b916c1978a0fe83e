/** What was seen lately, at most so much of it: the eldest goes first. */
export interface Cache<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): void;
  delete(key: K): void;
}

export function createCache<K, V>(max: number): Cache<K, V> {
  const entries = new Map<K, V>();
  return {
    get: (key) => entries.get(key),
    set(key, value) {
      // one that is set again is no longer the eldest
      entries.delete(key);
      entries.set(key, value);
      if (entries.size <= max) return;
      const [eldest] = entries.keys();
      if (eldest !== undefined) entries.delete(eldest);
    },
    delete: (key) => void entries.delete(key),
  };
}
