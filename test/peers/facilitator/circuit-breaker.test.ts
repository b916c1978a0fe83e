import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type CallEnd,
  type CircuitCall,
  createCircuitBreaker,
  failuresToOpen,
  firstPauseMs,
  longestPauseMs,
} from '../../../src/peers/facilitator/circuit-breaker.ts';

const failed: CallEnd = { failed: 'timeout' };

/** A breaker with a test clock, and the state changes it has reported. */
function start() {
  const clock = { nowMs: 0 };
  const changes: string[] = [];
  const breaker = createCircuitBreaker({
    now: () => clock.nowMs,
    onCircuit: (change) => changes.push(change.state === 'open' ? `open: ${change.cause}` : 'closed'),
  });
  const call = (kind: CircuitCall, end: CallEnd): boolean => {
    const ended = breaker.begin(kind);
    ended?.(end);
    return ended !== undefined;
  };
  const open = (kind: 'verify' | 'settle' = 'verify'): void => {
    for (let i = 0; i < failuresToOpen; i++) call(kind, failed);
  };
  /** How long it is until a verify is let through, whose end is this. */
  const pauseMs = (end: CallEnd): number => {
    const from = clock.nowMs;
    while (!call('verify', end) && clock.nowMs < from + 2 * longestPauseMs) clock.nowMs += 100;
    return clock.nowMs - from;
  };
  return { clock, changes, breaker, call, open, pauseMs };
}

test('the circuit opens at the fifth consecutive failure, and reports that once', () => {
  const { breaker, call, changes } = start();
  for (let i = 1; i < failuresToOpen; i++) call('verify', failed);
  call('verify', 'answered');
  for (let i = 1; i < failuresToOpen; i++) call(i % 2 ? 'verify' : 'settle', failed);
  expect(breaker.isOpen()).toBe(false);
  expect(call('settle', { failed: 'status_502' })).toBe(true);
  expect(breaker.isOpen()).toBe(true);
  expect(call('verify', failed)).toBe(false);
  expect(changes).toEqual(['open: status_502']);
});

test('the pauses double up to the longest, and start from the first again after a success', () => {
  const { open, call, pauseMs, changes } = start();
  open();
  const pauses = [1, 2, 3, 4, 5].map(() => pauseMs(failed));
  expect(pauses).toEqual([firstPauseMs, 10_000, 20_000, longestPauseMs, longestPauseMs]);
  expect(pauseMs('answered')).toBe(longestPauseMs);
  expect(call('verify', 'answered')).toBe(true);
  open();
  expect(pauseMs('answered')).toBe(firstPauseMs);
  expect(changes).toEqual(['open: timeout', 'closed', 'open: timeout', 'closed']);
});

test('a payment whose repeated settles fail does not open the circuit', () => {
  const { breaker, call } = start();
  for (let i = 1; i < failuresToOpen; i++) call('settle', failed);
  for (let i = 0; i < failuresToOpen; i++) call('settle_again', failed);
  expect(breaker.isOpen()).toBe(false);
  call('settle_again', 'answered');
  call('settle', failed);
  expect(breaker.isOpen()).toBe(false);
});

test('after the pause one probe is sent, and the next only after it has ended', () => {
  const { breaker, clock, open } = start();
  open();
  clock.nowMs = firstPauseMs;
  const probe = breaker.begin('verify');
  expect(probe).toBeDefined();
  expect(breaker.begin('verify')).toBeUndefined();
  // the probe was inconclusive, so the next one may begin
  probe?.('inconclusive');
  expect(breaker.begin('verify')).toBeDefined();
});

test('failures of settle alone open the circuit, although verify succeeds', () => {
  const { breaker, call } = start();
  for (let i = 0; i < failuresToOpen; i++) {
    call('verify', 'answered');
    call('settle', failed);
  }
  expect(breaker.isOpen()).toBe(true);
});

test.each([
  ['supported', 'verify'],
  ['verify', 'settle'],
] as const)('a success of %s closes it, and the next failure of %s opens it again', (good, bad) => {
  const { breaker, clock, open, call, pauseMs } = start();
  open(bad);
  clock.nowMs = firstPauseMs;
  call(good, 'answered');
  expect(breaker.isOpen()).toBe(false);
  call(bad, failed);
  expect(breaker.isOpen()).toBe(true);
  expect(pauseMs('answered')).toBe(2 * firstPauseMs);
});

test('of a call that began before the circuit changed, a failure is ignored and a success counts', () => {
  const { breaker, open, call } = start();
  const early = [breaker.begin('settle'), breaker.begin('settle')] as const;
  open();
  call('supported', 'answered');
  early[0]?.(failed);
  expect(breaker.isOpen()).toBe(false);
  call('verify', failed);
  expect(breaker.isOpen()).toBe(true);
  early[1]?.('answered');
  expect(breaker.isOpen()).toBe(false);
});

const calls = fc.constantFrom<CircuitCall>('supported', 'verify', 'settle', 'settle_again');
const ends = fc.constantFrom<CallEnd>('answered', 'inconclusive', failed, failed, failed);
type Step =
  | { readonly begin: CircuitCall }
  | { readonly which: number; readonly end: CallEnd }
  | { readonly waitMs: number };
const steps = fc.array(
  fc.oneof<fc.MaybeWeightedArbitrary<Step>[]>(
    { weight: 4, arbitrary: fc.record({ begin: calls }) },
    { weight: 4, arbitrary: fc.record({ which: fc.nat(20), end: ends }) },
    { weight: 1, arbitrary: fc.record({ waitMs: fc.integer({ min: 1, max: 40_000 }) }) },
  ),
  { maxLength: 120, size: 'max' },
);

interface RunningCall {
  readonly kind: CircuitCall;
  /** Let through although the circuit is open: one at a time. */
  isProbe: boolean;
  readonly end: (end: CallEnd) => void;
}

/** Plays a script and names every rule that it saw broken. */
function brokenRules(script: readonly Step[]): string[] {
  const { clock, changes, breaker } = start();
  const broken: string[] = [];
  const rule = (name: string, holds: boolean): void => void (holds || broken.push(name));
  const running: RunningCall[] = [];
  let failures = 0;

  const end = ({ kind, end: tell }: RunningCall, how: CallEnd): void => {
    const wasOpen = breaker.isOpen();
    const isFailure = how === failed && (kind === 'verify' || kind === 'settle');
    tell(how);
    failures = how === 'answered' && kind.startsWith('settle') ? 0 : failures + (isFailure ? 1 : 0);
    rule('a success closes', how !== 'answered' || !breaker.isOpen());
    const isOpening = breaker.isOpen() && !wasOpen;
    rule('only failures open', !isOpening || (isFailure && failures >= failuresToOpen));
    // calls that began before a change of state are no longer probes
    if (breaker.isOpen() !== wasOpen) for (const other of running) other.isProbe = false;
  };

  for (const step of script) {
    const isOpen = breaker.isOpen();
    if ('waitMs' in step) clock.nowMs += step.waitMs;
    else if ('begin' in step) {
      const kind = step.begin;
      const begun = breaker.begin(kind);
      rule(
        'only verify is refused, only while it is open',
        begun !== undefined || (isOpen && kind === 'verify'),
      );
      if (begun) running.push({ kind, isProbe: isOpen && kind === 'verify', end: begun });
    } else {
      for (const call of running.splice(step.which % (running.length || 1), 1)) end(call, step.end);
    }
    rule('one probe at a time', running.filter(({ isProbe }) => isProbe).length <= 1);
  }
  const expected = changes.map((_, index) => (index % 2 ? 'closed' : 'open: timeout'));
  rule('openings and closings are reported alternately', changes.join() === expected.join());
  rule('the last reported change is the current state', (changes.length % 2 === 1) === breaker.isOpen());
  for (const call of running) call.end('inconclusive');
  clock.nowMs += longestPauseMs;
  rule('a probe is possible after the longest pause', breaker.begin('verify') !== undefined);
  return broken;
}

test('for any sequence of calls: settle is always allowed, one probe runs at a time, a success closes the circuit, and a probe is always possible later', () => {
  fc.assert(
    fc.property(steps, (script) => {
      expect(brokenRules(script)).toEqual([]);
    }),
    { numRuns: 2_000 },
  );
});
