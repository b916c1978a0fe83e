import { expect, test } from 'vitest';
import { createConcurrencyLimit } from '../../../src/base/runtime/concurrency-limit.ts';

/** Tasks that end on request, and the running ones. */
function tasks() {
  const ends = new Map<string, () => void>();
  return {
    /** Once all microtasks are done, in which places are taken and handed on. */
    async running() {
      await new Promise(setImmediate);
      return [...ends.keys()];
    },
    task: (name: string) => () => new Promise<string>((resolve) => ends.set(name, () => resolve(name))),
    end(name: string) {
      ends.get(name)?.();
      ends.delete(name);
    },
  };
}

const longMs = 60_000;

test('waiting tasks run in the order of their arrival', async () => {
  const gate = createConcurrencyLimit(2);
  const { running, task, end } = tasks();
  // whether its wait is limited or not
  const start = (name: string) => (name > 'b' ? gate.take(task(name)) : gate.run(longMs, task(name)));
  const results = ['a', 'b', 'c', 'd'].map(start);
  expect(await running()).toEqual(['a', 'b']);
  end('b');
  expect(await running()).toEqual(['a', 'c']);
  results.push(start('e'));
  expect(await running()).toEqual(['a', 'c']);
  end('a');
  end('c');
  expect(await running()).toEqual(['d', 'e']);
  end('d');
  end('e');
  results.push(start('f'), start('g'), start('h'));
  expect(await running()).toEqual(['f', 'g']);
  end('f');
  expect(await running()).toEqual(['g', 'h']);
  end('g');
  end('h');
  expect(await Promise.all(results)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
});

test('a task that waited too long is refused, and the next one takes its place in the queue', async () => {
  const gate = createConcurrencyLimit(1);
  const { running, task, end } = tasks();
  const first = gate.run(longMs, task('a'));
  const impatient = gate.run(1, task('b'));
  const patient = gate.run(longMs, task('c'));
  expect(await impatient).toBeUndefined();
  end('a');
  expect(await running()).toEqual(['c']);
  end('c');
  expect(await Promise.all([first, patient])).toEqual(['a', 'c']);
});

test('a task that fails gives its place back', async () => {
  const gate = createConcurrencyLimit(1);
  await expect(gate.take(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await gate.run(0, () => Promise.resolve('yes'))).toBe('yes');
});
