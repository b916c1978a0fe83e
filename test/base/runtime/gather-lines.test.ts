import { expect, onTestFinished, test, vi } from 'vitest';
import { gatherLines } from '../../../src/base/runtime/gather-lines.ts';

test('the log lines of 10 ms are written together, in order, and those of an ending process with it', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const written: string[] = [];
  const before = process.listeners('exit');
  const lines = gatherLines({ write: (text) => void written.push(text) });
  lines.write('a\n');
  lines.write('b\n');
  vi.advanceTimersByTime(9);
  expect(written).toEqual([]);
  vi.advanceTimersByTime(10);
  expect(written).toEqual(['a\nb\n']);
  lines.write('c\n');
  lines.flushSync();
  vi.advanceTimersByTime(10);
  expect(written).toEqual(['a\nb\n', 'c\n']);
  lines.write('d\n');
  for (const listener of process.listeners('exit')) {
    if (before.includes(listener)) continue;
    process.off('exit', listener);
    listener.call(process, 0);
  }
  expect(written).toEqual(['a\nb\n', 'c\n', 'd\n']);
});
