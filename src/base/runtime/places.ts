export type Places = ReturnType<typeof createPlaces>;

/** A name, and the most places that are taken under it at the same time. */
export type Share = readonly [name: string, most: number];

/** Bounds what runs at the same time, under several names at once. */
export function createPlaces() {
  const counts = new Map<string, number>();
  const add = (name: string, change: 1 | -1): void => {
    const count = (counts.get(name) ?? 0) + change;
    if (count > 0) counts.set(name, count);
    else counts.delete(name);
  };
  return {
    /** Takes a place under each name, and returns how to give it back, once; undefined where one of them has none left. */
    take(shares: readonly Share[]): (() => void) | undefined {
      if (shares.some(([name, most]) => (counts.get(name) ?? 0) >= most)) return undefined;
      let taken = shares.map(([name]) => name);
      for (const name of taken) add(name, 1);
      return () => {
        for (const name of taken) add(name, -1);
        taken = [];
      };
    },
  };
}
