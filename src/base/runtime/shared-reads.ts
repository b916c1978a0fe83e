/** Makes reads that are asked for at the same time under one name once. */
export interface SharedReads<T> {
  /** The outcome of `make`, or of the read of this name that is under way: it may have begun earlier. */
  read(name: string, make: () => Promise<T>): Promise<T>;
}

export function createSharedReads<T>(): SharedReads<T> {
  const underWay = new Map<string, Promise<T>>();
  return {
    async read(name, make) {
      const known = underWay.get(name);
      if (known) return known;
      const made = make();
      underWay.set(name, made);
      try {
        return await made;
      } finally {
        underWay.delete(name);
      }
    },
  };
}
