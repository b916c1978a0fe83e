/** A promise, and its functions to settle it: `Promise.withResolvers`, which Node has only from version 22 on. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

export function deferred<T>(): Deferred<T> {
  let settle: ((value: T) => void) | undefined;
  const promise = new Promise<T>((resolve) => (settle = resolve));
  if (!settle) throw new Error('a promise did not run its executor');
  return { promise, resolve: settle };
}
