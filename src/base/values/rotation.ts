/** Items of several keys, taken in turn: one of each key before the next of the same. Each item is added once. */
export interface Rotation<T> {
  /** How many wait, in all. */
  readonly size: number;
  countOf(key: string): number;
  add(key: string, item: T): void;
  /** Before the others of its key. */
  addFirst(key: string, item: T): void;
  /** Nothing if it does not wait any more. */
  remove(key: string, item: T): void;
  /** The item whose turn it is, which waits no more; undefined if none waits. */
  next(): T | undefined;
}

export function createRotation<T>(): Rotation<T> {
  /** By key, in the order of their turns. No key is without an item. */
  const waiting = new Map<string, Set<T>>();
  let size = 0;
  const remove = (key: string, item: T): void => {
    const ofKey = waiting.get(key);
    if (!ofKey?.delete(item)) return;
    size -= 1;
    if (ofKey.size === 0) waiting.delete(key);
  };
  return {
    get size() {
      return size;
    },
    countOf: (key) => waiting.get(key)?.size ?? 0,
    add(key, item) {
      const ofKey = waiting.get(key);
      if (ofKey) ofKey.add(item);
      else waiting.set(key, new Set([item]));
      size += 1;
    },
    addFirst(key, item) {
      waiting.set(key, new Set([item, ...(waiting.get(key) ?? [])]));
      size += 1;
    },
    remove,
    next() {
      for (const [key, ofKey] of waiting)
        for (const item of ofKey) {
          remove(key, item);
          // after all others
          if (waiting.delete(key)) waiting.set(key, ofKey);
          return item;
        }
      return undefined;
    },
  };
}
