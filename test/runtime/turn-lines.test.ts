import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { linesByTurn } from '../../src/runtime/turn-lines.ts';

test('the log lines of one turn are written at once, in order, and those of an ending process with it', async () => {
  const written: string[] = [];
  const before = process.listeners('exit');
  const lines = linesByTurn({ write: (text) => void written.push(text) });
  lines.write('a\n');
  lines.write('b\n');
  await Promise.resolve();
  expect(written).toEqual([]);
  await turn();
  expect(written).toEqual(['a\nb\n']);
  lines.write('c\n');
  lines.flushSync();
  await turn();
  expect(written).toEqual(['a\nb\n', 'c\n']);
  lines.write('d\n');
  for (const listener of process.listeners('exit')) {
    if (before.includes(listener)) continue;
    process.off('exit', listener);
    listener.call(process, 0);
  }
  expect(written).toEqual(['a\nb\n', 'c\n', 'd\n']);
});
