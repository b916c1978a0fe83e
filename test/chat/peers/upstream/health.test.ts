import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { StreamEnding, UpstreamAnswer } from '../../../../src/chat/peers/upstream/answer.ts';
import {
  type Attempt,
  type Candidate,
  createUpstreamHealth,
  type HealthSign,
  healthSign,
  type UpstreamHealth,
} from '../../../../src/chat/peers/upstream/health.ts';

const success: HealthSign = { kind: 'success' };
const failure: HealthSign = { kind: 'failure' };
const began: HealthSign = { kind: 'began' };
const neutral: HealthSign = { kind: 'neutral' };
const away: HealthSign = { kind: 'failure', isOfUpstream: true };
const settings = { failuresToOpen: 3, firstPauseMs: 1000, maxPauseMs: 8000 };
const a = { name: 'a', model: 'm' };
const one: readonly Candidate[] = [{ ...a, weight: 1 }];

/** A health whose time stands still until it is moved. */
function create(random = () => 0): { health: UpstreamHealth; clock: { nowMs: number } } {
  const clock = { nowMs: 1_000_000 };
  return { health: createUpstreamHealth({ ...settings, nowMs: () => clock.nowMs, random }), clock };
}

function choose(health: UpstreamHealth, candidates = one): Attempt {
  const choice = health.choose(candidates);
  if (choice.kind !== 'chosen') throw new Error(`nobody: ${choice.retryAfterMs} ms`);
  return choice.attempt;
}

function fail(health: UpstreamHealth, times: number): void {
  for (let time = 0; time < times; time += 1) choose(health).report(failure);
}

/** How often each is chosen when the random numbers fall evenly. */
function sharesOf(candidates: readonly Candidate[], prepare: (health: UpstreamHealth) => void = () => {}) {
  const rounds = 1000;
  let at = 0;
  let isEven = false;
  const { health } = create(() => (isEven ? at / rounds : 0));
  prepare(health);
  isEven = true;
  const counts: Record<string, number> = {};
  for (; at < rounds; at += 1) {
    const { name } = choose(health, candidates);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

describe('the choice', () => {
  const pair: readonly Candidate[] = [
    { name: 'a', model: 'm', weight: 3 },
    { name: 'b', model: 'm', weight: 1 },
  ];

  test('follows the weights', () => {
    expect(sharesOf(pair)).toEqual({ a: 750, b: 250 });
    expect(sharesOf([...pair, { name: 'c', model: 'm', weight: 6 }])).toEqual({ a: 300, b: 100, c: 600 });
  });

  test('prefers upstreams that did not fail recently, and returns to one with its successes', () => {
    const failing = sharesOf(pair, (health) => fail(health, 2));
    const recovering = sharesOf(pair, (health) => {
      fail(health, 2);
      for (let time = 0; time < 5; time += 1) choose(health).report(success);
    });
    expect(failing['a']).toBeLessThan(700);
    expect(recovering['a']).toBeGreaterThan(failing['a'] ?? 0);
    expect(recovering['a']).toBeLessThanOrEqual(750);
  });

  test('passes over whose circuit is open', () => {
    expect(sharesOf(pair, (health) => fail(health, 3))).toEqual({ b: 1000 });
  });

  test('chooses none of no upstreams', () => {
    expect(create().health.choose([])).toEqual({ kind: 'none' });
  });
});

describe('the circuit', () => {
  test('opens with failures in a row, not with as many between successes', () => {
    const { health } = create();
    for (const sign of [failure, failure, success, failure, failure, neutral]) choose(health).report(sign);
    expect(health.circuitOf(a)).toBe('closed');
    choose(health).report(failure);
    expect(health.circuitOf(a)).toBe('open');
    expect(health.choose(one)).toEqual({ kind: 'none', retryAfterMs: 1000 });
  });

  test('lets one probe through after its pause, and closes when that is well', () => {
    const { health, clock } = create();
    fail(health, 3);
    clock.nowMs += 999;
    expect(health.choose(one)).toEqual({ kind: 'none', retryAfterMs: 1 });
    clock.nowMs += 1;
    const probe = choose(health);
    expect(health.circuitOf(a)).toBe('probing');
    expect(health.choose(one)).toEqual({ kind: 'none', retryAfterMs: 8000 });
    probe.report(success);
    expect(health.circuitOf(a)).toBe('closed');
    expect([choose(health), choose(health)]).toHaveLength(2);
  });

  test('stays open for twice as long after each probe that fails, up to the longest pause', () => {
    const { health, clock } = create();
    fail(health, 3);
    const pauses = [1000, 2000, 4000, 8000, 8000];
    for (const pauseMs of pauses) {
      expect(health.choose(one)).toEqual({ kind: 'none', retryAfterMs: pauseMs });
      clock.nowMs += pauseMs;
      choose(health).report(failure);
    }
    clock.nowMs += 8000;
    choose(health).report(success);
    fail(health, 3);
    expect(health.choose(one)).toEqual({ kind: 'none', retryAfterMs: 1000 });
  });

  test('probes again when a probe said nothing, or was never heard of', () => {
    const { health, clock } = create();
    fail(health, 3);
    clock.nowMs += 1000;
    choose(health).report(neutral);
    choose(health);
    clock.nowMs += 8000;
    choose(health).report(success);
    expect(health.circuitOf(a)).toBe('closed');
  });

  test('is not moved by attempts from before it opened', () => {
    const { health, clock } = create();
    const early = [choose(health), choose(health)];
    fail(health, 3);
    early[0]?.report(success);
    expect(health.circuitOf(a)).toBe('open');
    clock.nowMs += 1000;
    const probe = choose(health);
    early[1]?.report(failure);
    expect(health.circuitOf(a)).toBe('probing');
    probe.report(success);
    expect(health.circuitOf(a)).toBe('closed');
  });

  test('opens when streams begin well and are cut', () => {
    const { health } = create();
    for (let time = 0; time < 3; time += 1) {
      const attempt = choose(health);
      attempt.report(began);
      attempt.report(failure);
    }
    expect(health.circuitOf(a)).toBe('open');
  });

  test('closes on trial when a probe begins to stream: only its good end is a success', () => {
    const { health, clock } = create();
    fail(health, 3);
    clock.nowMs += 1000;
    const probe = choose(health);
    probe.report(began);
    expect(health.circuitOf(a)).toBe('closed');
    probe.report(failure);
    expect(health.choose(one)).toEqual({ kind: 'none', retryAfterMs: 2000 });
    clock.nowMs += 2000;
    const second = choose(health);
    second.report(began);
    second.report(success);
    fail(health, 2);
    expect(health.circuitOf(a)).toBe('closed');
  });
});

describe('of a model that fails', () => {
  const other = { name: 'a', model: 'other' };

  test('the other models of its upstream know nothing', () => {
    const { health } = create();
    fail(health, 3);
    expect(health.circuitOf(a)).toBe('open');
    expect(health.circuitOf(other)).toBe('closed');
    expect(health.choose([{ ...other, weight: 1 }]).kind).toBe('chosen');
  });

  test('a Retry-After is kept to there and nowhere else', () => {
    const { health } = create();
    choose(health).report({ kind: 'failure', retryAfterSecs: 7 });
    expect(health.choose(one)).toEqual({ kind: 'none', retryAfterMs: 7000 });
    expect(health.choose([{ ...other, weight: 1 }]).kind).toBe('chosen');
  });

  test('one caller alone says nothing to the others', () => {
    const { health } = create();
    const failFor = (voter: string): void => {
      const choice = health.choose(one, voter);
      if (choice.kind === 'chosen') choice.attempt.report(failure);
    };
    for (let time = 0; time < 20; time += 1) failFor('mallory');
    failFor('ann');
    expect(health.circuitOf(a)).toBe('closed');
    failFor('bob');
    expect(health.circuitOf(a)).toBe('open');
  });

  test('the upstream is one that was reached', () => {
    const { health, clock } = create();
    for (let time = 0; time < 3; time += 1) choose(health).report(away);
    expect(health.circuitOf(other)).toBe('open');
    clock.nowMs += 1000;
    choose(health).report(failure);
    expect(health.circuitOf(other)).toBe('closed');
    expect(health.circuitOf(a)).toBe('closed');
  });
});

describe('an unreachable upstream', () => {
  test('is unreachable for all its models and all callers', () => {
    const { health } = create();
    for (const model of ['m', 'n', 'o']) {
      const choice = health.choose([{ name: 'a', model, weight: 1 }], 'ann');
      if (choice.kind === 'chosen') choice.attempt.report({ ...away, retryAfterSecs: 2 });
    }
    expect(health.choose([{ name: 'a', model: 'p', weight: 1 }])).toEqual({
      kind: 'none',
      retryAfterMs: 2000,
    });
    expect(health.circuitOf({ name: 'b', model: 'm' })).toBe('closed');
  });
});

describe('a Retry-After', () => {
  test('is kept to, whatever the circuit', () => {
    const { health, clock } = create();
    choose(health).report({ kind: 'failure', retryAfterSecs: 7 });
    expect(health.circuitOf(a)).toBe('closed');
    expect(health.choose(one)).toEqual({ kind: 'none', retryAfterMs: 7000 });
    clock.nowMs += 7000;
    expect(choose(health).name).toBe('a');
  });

  test('is not shortened by a later, smaller one, nor by a success', () => {
    const { health } = create();
    const attempts = [choose(health), choose(health), choose(health)];
    attempts[0]?.report({ kind: 'failure', retryAfterSecs: 7 });
    attempts[1]?.report({ kind: 'failure', retryAfterSecs: 1 });
    attempts[2]?.report(success);
    expect(health.choose(one)).toEqual({ kind: 'none', retryAfterMs: 7000 });
  });
});

test('whatever happens, a probe goes alone, and no upstream is left out for ever', () => {
  const anyStep = fc.record({
    waitMs: fc.nat(3000),
    voter: fc.constantFrom(undefined, 'ann', 'bob'),
    report: fc.option(
      fc.record({
        at: fc.nat(10),
        sign: fc.record({
          kind: fc.constantFrom('success', 'began', 'failure', 'neutral'),
          isOfUpstream: fc.boolean(),
          retryAfterSecs: fc.nat(5),
        }),
      }),
    ),
  });
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 60 }), (steps) => {
      const { health, clock } = create();
      const attempts: Attempt[] = [];
      for (const { waitMs, voter, report } of steps) {
        clock.nowMs += waitMs;
        const circuit = health.circuitOf(a);
        const choice = health.choose(one, voter);
        expect(circuit === 'probing' && choice.kind === 'chosen').toBe(false);
        expect(choice.kind === 'none' ? choice.retryAfterMs : 1).toBeGreaterThan(0);
        if (choice.kind === 'chosen') attempts.push(choice.attempt);
        if (report) attempts.at(-1 - (report.at % attempts.length))?.report(report.sign);
      }
      const last = health.choose(one);
      clock.nowMs += last.kind === 'none' ? (last.retryAfterMs ?? 0) : 8000;
      expect(health.choose(one).kind).toBe('chosen');
    }),
  );
});

async function* nothing(): AsyncGenerator<never> {}

describe('an answer', () => {
  const failed = { detail: '', beforeFirstByte: true } as const;
  const progress = { isFinished: true, written: '', latencyMs: 1 };

  test.each([
    [{ kind: 'completed', body: Buffer.alloc(0), firstByteMs: 1, ...progress }, success],
    [{ kind: 'completed', isTerminated: true, ...progress }, success],
    [
      {
        kind: 'streaming',
        firstByteMs: 1,
        chunks: nothing(),
        ending: new Promise(() => {}),
        abort: () => {},
      },
      began,
    ],
    [{ kind: 'busy' }, neutral],
    [{ kind: 'refused', status: 400, fault: 'request' }, success],
    [{ kind: 'refused', status: 404, fault: 'upstream' }, neutral],
    [{ kind: 'refused', status: 403, fault: 'upstream' }, neutral],
    [{ kind: 'refused', status: 401, fault: 'upstream' }, away],
    [
      { kind: 'refused', status: 402, fault: 'upstream', retryAfterSecs: 3 },
      { ...away, retryAfterSecs: 3 },
    ],
    [
      { kind: 'refused', status: 429, fault: 'upstream', retryAfterSecs: 3 },
      { kind: 'failure', retryAfterSecs: 3 },
    ],
    [
      { kind: 'failed', cause: 'status_503', retryAfterSecs: 3, ...failed },
      { kind: 'failure', retryAfterSecs: 3 },
    ],
    [{ kind: 'failed', cause: 'unreachable', ...failed }, away],
    [{ kind: 'failed', cause: 'connect_timeout', ...failed }, away],
    [{ kind: 'failed', cause: 'first_byte_timeout', ...failed }, failure],
    [{ kind: 'failed', cause: 'aborted', ...failed }, neutral],
    [{ kind: 'failed', cause: 'slow_reader', detail: '', beforeFirstByte: false, ...progress }, neutral],
    [{ kind: 'failed', cause: 'stalled', detail: '', beforeFirstByte: false, ...progress }, failure],
  ] satisfies [UpstreamAnswer | StreamEnding, HealthSign][])('%j', (answer, sign) => {
    expect(healthSign(answer)).toEqual(sign);
  });
});
