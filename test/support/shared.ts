import { AsyncLocalStorage } from 'node:async_hooks';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

type End = () => unknown;

const ofFile = new AsyncLocalStorage<End[]>();

/** Ends what a test has started, once the test is over; what is shared, once all tests of its file are. */
export function whenOver(end: End): void {
  const ends = ofFile.getStore();
  if (ends) ends.push(end);
  else onTestFinished(async () => void (await end()));
}

/** Starts something once, for all tests of a file or of a `describe` that neither concern its start nor disturb each other. */
export function useShared<T>(start: () => Promise<T>): () => T {
  const ends: End[] = [];
  let started: { readonly value: T } | undefined;
  beforeAll(async () => {
    started = { value: await ofFile.run(ends, start) };
  });
  afterAll(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });
  return () => {
    if (!started) throw new Error('it is started before the first test');
    return started.value;
  };
}
