import { expect, test } from 'vitest';
import type { PushAnswer } from '../../../src/calls/peers/runner/push-runner.ts';
import { createPushWindow } from '../../../src/calls/workers/push-window.ts';

const busy = (retryAfterMs?: number): PushAnswer => ({
  kind: 'busy',
  reason: 'status_503',
  error: 'status 503',
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});
const taken: PushAnswer = { kind: 'completed', status: 200, result: Buffer.alloc(0), resultOmitted: false };

function windowOf(most: number) {
  let nowMs = 1_000_000;
  const window = createPushWindow(most, () => nowMs);
  const begin = (calls: number) => {
    for (let call = 0; call < calls; call++) window.began();
  };
  const end = (answer: PushAnswer, calls: number) => {
    for (let call = 0; call < calls; call++) window.ended(answer);
  };
  return { window, begin, end, pass: (ms: number) => void (nowMs += ms) };
}

test('a runner that has room for some of the calls gets that many simultaneously, and one more after ten seconds', () => {
  const { window, begin, end, pass } = windowOf(32);
  expect(window.room()).toBe(32);
  begin(32);
  end(busy(1_000), 20);
  expect(window.room()).toBe(0);
  pass(1_000);
  // twelve are with it
  expect(window.room()).toBe(0);
  end(taken, 5);
  expect(window.room()).toBe(5);
  begin(5);
  end(taken, 12);
  expect(window.room()).toBe(12);
  pass(10_000);
  begin(12);
  end(taken, 12);
  expect(window.room()).toBe(24);
  begin(24);
  end(taken, 24);
  expect(window.room()).toBe(32);
});

test('a runner that takes nothing gets one call after each pause, which grows to half a minute, and all of them soon after it takes one', () => {
  const { window, begin, end, pass } = windowOf(32);
  begin(32);
  end(busy(), 32);
  const waits: number[] = [];
  for (let probe = 0; probe < 12; probe++) {
    let waited = 0;
    while (window.room() === 0) {
      pass(100);
      waited += 100;
    }
    waits.push(waited);
    expect(window.room()).toBe(1);
    begin(1);
    end(busy(), 1);
  }
  expect(waits[0]).toBeLessThanOrEqual(1_000);
  expect(waits.slice(6).every((ms) => ms >= 15_000 && ms <= 30_000)).toBe(true);
  pass(30_000);
  for (const room of [1, 2, 4, 8, 16, 32]) {
    expect(window.room()).toBe(room);
    begin(room);
    end(taken, room);
  }
});

test('a runner that asks for a pause gets nothing for so long, however many calls it refuses meanwhile', () => {
  const { window, begin, end, pass } = windowOf(3);
  begin(3);
  end(busy(60_000), 3);
  pass(59_999);
  expect(window.room()).toBe(0);
  pass(1);
  expect(window.room()).toBe(1);
});
