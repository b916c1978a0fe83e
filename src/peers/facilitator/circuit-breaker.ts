import { backOffMs } from '../../domain/values/back-off.ts';

/** So many failures of `verify` and `settle` open the circuit. */
export const failuresToOpen = 5;
/** The first pause of an open circuit; each further one is twice as long, up to the longest. */
export const firstPauseMs = 5_000;
export const longestPauseMs = 30_000;

/**
 * What a call was for. The further it reaches into a payment, the more its success proves. One payment that always fails
 * must not shut out all others, so the failures of `settle_again` are not counted.
 */
export type CircuitCall = 'supported' | 'verify' | 'settle' | 'settle_again';

/** How a call ended: with a useful answer, with nothing learnt about the peer, or without an answer, for this cause. */
export type CallEnd = 'answered' | 'inconclusive' | { readonly failed: string };

/** Told once at each opening, with the cause of the last failure, and once at each closing. */
export type OnCircuit = (
  change: { readonly state: 'open'; readonly cause: string } | { readonly state: 'closed' },
) => void;

/** Refuses questions to a peer that has stopped answering, and lets one at a time find out whether it is back. */
export interface CircuitBreaker {
  isOpen(): boolean;
  /**
   * Begins a call; whoever gets the function back tells it once how the call ended. Undefined where the call must not be
   * made: only ever a `verify`. Money may hang on the outcome of settling, so that always goes out.
   */
  begin(call: CircuitCall): ((end: CallEnd) => void) | undefined;
}

export interface CircuitBreakerOptions {
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number;
  readonly onCircuit?: OnCircuit;
}

/**
 * A success of any call closes the circuit, and takes back the failures that it speaks against: settling all of them,
 * `verify` those of verify, `supported` none. What is left counts on, so that a peer whose `/supported` alone works opens
 * it again with its next failure.
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
  /** Counts openings and closings: a call that began before the last one fails too late to tell anything. */
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
