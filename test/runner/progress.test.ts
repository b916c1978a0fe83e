import { expect, test, vi } from 'vitest';
import type { LeaseAnswer } from '../../src/runner/lease-client.ts';
import { createReporter, type Progress } from '../../src/runner/progress.ts';

function reporter(answer: LeaseAnswer = { kind: 'again', reason: 'away', afterMs: 0 }) {
  const sent: Progress[] = [];
  const ended = new AbortController();
  const report = createReporter((body) => {
    sent.push(body);
    return Promise.resolve(answer);
  }, ended.signal);
  return { sent, ended, report };
}

test('of many values that a handler reports the first and the last are sent, and none after its end', async () => {
  vi.useFakeTimers();
  try {
    const { sent, ended, report } = reporter();
    for (let done = 0; done <= 100; done++) report({ fraction: done / 100 });
    await vi.advanceTimersByTimeAsync(999);
    expect(sent).toEqual([{ fraction: 0 }]);
    await vi.advanceTimersByTimeAsync(1);
    expect(sent).toEqual([{ fraction: 0 }, { fraction: 1 }]);
    ended.abort();
    report({ fraction: 0.5 });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(sent).toHaveLength(2);
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  [{ fraction: 7 }, { fraction: 1 }],
  [
    { fraction: -1, message: 'a\nb\u0000' },
    { fraction: 0, message: 'a b ' },
  ],
  [{ fraction: Number.NaN, message: 'x'.repeat(300) }, { message: 'x'.repeat(200) }],
  [{ message: 5 as unknown as string }, {}],
  [undefined, {}],
  [null, {}],
])('what a handler reports never makes its call fail: %j', (given, wanted) => {
  const { sent, report } = reporter();
  report(given as Progress);
  expect(sent).toEqual([wanted]);
});
