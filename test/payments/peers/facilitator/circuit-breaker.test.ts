import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type CallEnd,
  type CircuitCall,
  createCircuitBreaker,
} from '../../../../src/payments/peers/facilitator/circuit-breaker.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const [failuresToOpen, sourcesToOpen, firstPauseMs, longestPauseMs] = [5, 3, 5_000, 30_000];
/** A failure that no payment can have provoked. */
const failed: CallEnd = { failed: 'connection' };
/** One that this payment may have provoked. */
const provoked = (payer: number | string, client: number | string): CallEnd => ({
  failed: 'status_500',
  provokedBy: { payer: `payer ${payer}`, client: `client ${client}` },
});

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
  /** How long it is until a probe is needed, whose end is this. */
  const pauseMs = (end: CallEnd): number => {
    const from = clock.nowMs;
    while (!breaker.needsProbe() && clock.nowMs < from + 2 * longestPauseMs) clock.nowMs += 100;
    call('supported', end);
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
  expect(call('settle', { failed: 'timeout' })).toBe(true);
  expect(breaker.isOpen()).toBe(true);
  expect(call('verify', failed)).toBe(false);
  expect(changes).toEqual(['open: timeout']);
});

test.each([
  ['one payer', (i: number) => provoked(0, i)],
  ['one client', (i: number) => provoked(i, 0)],
  ['two payers and two clients', (i: number) => provoked(i % 2, i % 2)],
])('any number of failures that payments of %s may have provoked leave the circuit closed', (_, end) => {
  const { breaker, call } = start();
  for (let i = 0; i < 20 * failuresToOpen; i++) expect(call(i % 2 ? 'verify' : 'settle', end(i))).toBe(true);
  expect(breaker.isOpen()).toBe(false);
});

test('failures of three payers and three clients open it, at the fifth', () => {
  const { breaker, call } = start();
  for (let i = 0; i < failuresToOpen; i++) {
    expect(breaker.isOpen()).toBe(false);
    call(i % 2 ? 'settle' : 'verify', provoked(i % sourcesToOpen, i % sourcesToOpen));
  }
  expect(breaker.isOpen()).toBe(true);
});

test('a success of verify between the failures of strangers keeps it closed', () => {
  const { breaker, call } = start();
  for (let i = 0; i < 4 * failuresToOpen; i++) {
    call('verify', provoked(i, i));
    if (i % (failuresToOpen - 1) === 0) call('verify', 'answered');
  }
  expect(breaker.isOpen()).toBe(false);
});

test('five failures of one payer need a probe: the circuit opens if that fails too, and stays closed if it is answered', () => {
  const { breaker, call } = start();
  for (let i = 0; i < failuresToOpen; i++) {
    expect(breaker.needsProbe()).toBe(false);
    call('verify', provoked(0, 0));
  }
  expect(breaker.needsProbe()).toBe(true);
  call('supported', 'answered');
  expect(breaker.isOpen()).toBe(false);
  call('supported', failed);
  expect(breaker.isOpen()).toBe(true);
});

test('failed probes alone do not open it', () => {
  const { breaker, call } = start();
  for (let i = 0; i < 20; i++) call('supported', failed);
  expect(breaker.isOpen()).toBe(false);
});

test('the pauses double up to the longest, and start from the first again after a payment was verified', () => {
  const { open, call, pauseMs, changes } = start();
  open();
  const pauses = [1, 2, 3, 4, 5].map(() => pauseMs(failed));
  expect(pauses).toEqual([firstPauseMs, 10_000, 20_000, longestPauseMs, longestPauseMs]);
  expect(pauseMs('answered')).toBe(longestPauseMs);
  expect(call('verify', 'answered')).toBe(true);
  open();
  expect(pauseMs('answered')).toBe(firstPauseMs);
  expect(changes).toEqual(['open: connection', 'closed', 'open: connection', 'closed']);
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

test('no payment is verified while the circuit is open, also after the pause: only an answered probe closes it', () => {
  const { breaker, clock, open, call } = start();
  open();
  expect(breaker.needsProbe()).toBe(false);
  call('supported', 'answered');
  expect(breaker.isOpen()).toBe(true);
  clock.nowMs = firstPauseMs;
  expect(breaker.needsProbe()).toBe(true);
  expect(breaker.begin('verify')).toBeUndefined();
  call('supported', 'inconclusive');
  expect(breaker.isOpen()).toBe(true);
  call('supported', 'answered');
  expect(breaker.begin('verify')).toBeDefined();
});

test('a stranger whose payment fails after the probe does not open it again', () => {
  const { breaker, open, call, pauseMs } = start();
  open();
  pauseMs('answered');
  for (let i = 0; i < 4 * failuresToOpen; i++) call('verify', provoked(0, 0));
  expect(breaker.isOpen()).toBe(false);
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
] as const)('while %s alone succeeds, each pause is longer than the last', (good, bad) => {
  const { breaker, open, call, pauseMs } = start();
  for (const expected of [firstPauseMs, 2 * firstPauseMs, 4 * firstPauseMs]) {
    open(bad);
    expect(pauseMs('answered')).toBe(expected);
    call(good, 'answered');
    expect(breaker.isOpen()).toBe(false);
  }
});

test('of a call that began before the circuit changed, a failure is ignored and a success of settle counts', () => {
  const { breaker, open, call, clock } = start();
  const early = Array.from({ length: failuresToOpen }, () => breaker.begin('settle'));
  const good = breaker.begin('settle');
  open();
  clock.nowMs = firstPauseMs;
  call('supported', 'answered');
  for (const end of early) end?.(failed);
  expect(breaker.isOpen()).toBe(false);
  open();
  expect(breaker.isOpen()).toBe(true);
  good?.('answered');
  expect(breaker.isOpen()).toBe(false);
});

const calls = fc.constantFrom<CircuitCall>('supported', 'verify', 'settle', 'settle_again');
const source = fc.tuple(fc.nat(3), fc.nat(3)).map(([payer, client]) => provoked(payer, client));
const ends = fc.oneof(fc.constantFrom<CallEnd>('answered', 'inconclusive', failed, failed, failed), source);
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
  readonly end: (end: CallEnd) => void;
}

const isFailure = (end: CallEnd): end is Exclude<CallEnd, string> => typeof end === 'object';

/** Plays a script and names every rule that it saw broken. */
function brokenRules(script: readonly Step[]): string[] {
  const { clock, changes, breaker } = start();
  const broken: string[] = [];
  const rule = (name: string, holds: boolean): void => void (holds || broken.push(name));
  const running: RunningCall[] = [];
  let failures = 0;

  const end = ({ kind, end: tell }: RunningCall, how: CallEnd): void => {
    const wasOpen = breaker.isOpen();
    const isPayment = kind === 'verify' || kind === 'settle';
    tell(how);
    if (isFailure(how) && isPayment) failures += 1;
    if (how === 'answered' && kind.startsWith('settle')) failures = 0;
    rule('a payment that succeeds closes', how !== 'answered' || kind === 'supported' || !breaker.isOpen());
    const isOpening = breaker.isOpen() && !wasOpen;
    rule('only failures open', !isOpening || (isFailure(how) && failures >= failuresToOpen));
    rule('only an answer closes', !wasOpen || breaker.isOpen() || how === 'answered');
  };

  for (const step of script) {
    const isOpen = breaker.isOpen();
    if ('waitMs' in step) clock.nowMs += step.waitMs;
    else if ('begin' in step) {
      const kind = step.begin;
      const begun = breaker.begin(kind);
      rule(
        'verify is refused while it is open, nothing else is',
        (begun === undefined) === (isOpen && kind === 'verify'),
      );
      if (begun) running.push({ kind, end: begun });
    } else {
      for (const call of running.splice(step.which % (running.length || 1), 1)) end(call, step.end);
    }
  }
  const isAlternating = changes.every((change, index) => (change === 'closed') === (index % 2 === 1));
  rule('openings and closings are reported alternately', isAlternating);
  rule('the last reported change is the current state', (changes.length % 2 === 1) === breaker.isOpen());
  clock.nowMs += longestPauseMs;
  breaker.begin('supported')?.('answered');
  rule('an answered probe closes it after the longest pause', breaker.begin('verify') !== undefined);
  return broken;
}

test('for any sequence of calls: settle is always allowed, verify never while the circuit is open, and an answered probe closes it', () => {
  fc.assert(
    fc.property(steps, (script) => {
      expect(brokenRules(script)).toEqual([]);
    }),
    propertyRuns(1_000),
  );
});
