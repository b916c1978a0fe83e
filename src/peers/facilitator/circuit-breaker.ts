import { backOffMs } from '../../domain/values/back-off.ts';

/** Failures of `verify` and `settle` that open the circuit. */
export const failuresToOpen = 5;
/** How long an open circuit first refuses; each further pause is twice as long, up to the longest. */
export const firstPauseMs = 5_000;
export const longestPauseMs = 30_000;

/**
 * The operation of a call. The success of a later step of a payment proves more. Failures of `settle_again` are not counted,
 * so that one payment which always fails does not block all others.
 */
export type CircuitCall = 'supported' | 'verify' | 'settle' | 'settle_again';

/** How a call ended: with a useful answer, with one that shows nothing about the peer, or with this failure. */
export type CallEnd = 'answered' | 'inconclusive' | { readonly failed: string };

/** Called once at each opening, with the cause of the last failure, and once at each closing. */
export type OnCircuit = (
  change: { readonly state: 'open'; readonly cause: string } | { readonly state: 'closed' },
) => void;

/**
 * After five consecutive failures the circuit opens for 5 to 30 seconds: calls to the peer are refused. Then one call at a time
 * tests whether the peer answers again.
 */
export interface CircuitBreaker {
  isOpen(): boolean;
  /**
   * Begins a call; the caller reports once, through the returned function, how the call ended. Undefined where the call must
   * not be made: only `verify` is refused. Settling is always allowed, since money may depend on its outcome.
   */
  begin(call: CircuitCall): ((end: CallEnd) => void) | undefined;
}

export interface CircuitBreakerOptions {
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number;
  readonly onCircuit?: OnCircuit;
}

/**
 * A success of any call closes the circuit and resets failure counts: settling all of them, `verify` those of verify,
 * `supported` none. The other counts remain, so that a peer whose `/supported` alone works opens the circuit again with its
 * next failure.
 */
export function createCircuitBreaker({
  now = () => performance.now(),
  onCircuit = () => {},
}: CircuitBreakerOptions = {}): CircuitBreaker {
  const failures = { verify: 0, settle: 0 };
  let isOpen = false;
  /** Since the circuit was last closed for good. */
  let pauses = 0;
  let pauseEndsAt = 0;
  let isProbing = false;
  /** Counts openings and closings: the failure of a call that began before the last one is ignored. */
  let changes = 0;

  const change = (open: boolean): void => {
    isOpen = open;
    isProbing = false;
    changes += 1;
  };
  const pause = (): void => {
    pauseEndsAt = now() + backOffMs({ firstMs: firstPauseMs, longestMs: longestPauseMs }, pauses);
    pauses += 1;
  };

  const succeed = (call: CircuitCall): void => {
    if (call !== 'supported') failures.verify = 0;
    if (call === 'settle' || call === 'settle_again') failures.settle = 0;
    if (failures.verify + failures.settle === 0) pauses = 0;
    if (!isOpen) return;
    change(false);
    onCircuit({ state: 'closed' });
  };
  const fail = (call: 'verify' | 'settle', cause: string): void => {
    if (isOpen) {
      if (now() >= pauseEndsAt) pause();
      return;
    }
    failures[call] += 1;
    if (failures.verify + failures.settle < failuresToOpen) return;
    pause();
    change(true);
    onCircuit({ state: 'open', cause });
  };

  return {
    isOpen: () => isOpen,
    begin(call) {
      const isProbe = isOpen && call === 'verify';
      if (isProbe && (isProbing || now() < pauseEndsAt)) return undefined;
      if (isProbe) isProbing = true;
      const begunAt = changes;
      return (end) => {
        const isCurrent = begunAt === changes;
        if (isProbe && isCurrent) isProbing = false;
        if (end === 'answered') return succeed(call);
        const counts = call === 'verify' || call === 'settle';
        if (end !== 'inconclusive' && isCurrent && counts) fail(call, end.failed);
      };
    },
  };
}
