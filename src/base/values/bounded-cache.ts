/** A map with a limited number of entries: the oldest entry is evicted first. */
export interface BoundedCache<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): void;
  delete(key: K): void;
}

export function createBoundedCache<K, V>(max: number): BoundedCache<K, V> {
  const entries = new Map<K, V>();
  return {
    get: (key) => entries.get(key),
    set(key, value) {
      // setting an entry again makes it the newest
      entries.delete(key);
      entries.set(key, value);
      if (entries.size <= max) return;
      const [oldest] = entries.keys();
      if (oldest !== undefined) entries.delete(oldest);
    },
    delete: (key) => void entries.delete(key),
  };
}
