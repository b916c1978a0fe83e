/** A value that is read in the background; kept while it cannot be read. */
export interface LastKnown<T> {
  /** Undefined before it was first read. */
  readonly value: T | undefined;
  /** Since it was read; before that, since this was created. */
  readonly ageSecs: number;
  readonly learn: (value: T) => void;
}

/** @param nowMs a monotonic clock */
export function createLastKnown<T>(nowMs: () => number = () => performance.now()): LastKnown<T> {
  let value: T | undefined;
  let atMs = nowMs();
  return {
    get value() {
      return value;
    },
    get ageSecs() {
      return (nowMs() - atMs) / 1_000;
    },
    learn(next) {
      value = next;
      atMs = nowMs();
    },
  };
}
