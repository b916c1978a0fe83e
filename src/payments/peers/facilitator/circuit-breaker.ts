import { backOffMs } from '../../../base/values/back-off.ts';

/** Consecutive failures of `verify` and `settle` that open the circuit. */
const failuresToOpen = 5;
/** The different payers and the different clients that must be among them. */
const sourcesToOpen = 3;
/** How long an open circuit first refuses; each further pause is twice as long, up to the longest. */
const firstPauseMs = 5_000;
const longestPauseMs = 30_000;

/**
 * The operation of a call. The success of a later step of a payment proves more. Failures of `settle_again` are not counted,
 * so that one payment which always fails does not block all others.
 */
export type CircuitCall = 'supported' | 'verify' | 'settle' | 'settle_again';

/** Where a payment comes from. */
export interface PaymentSource {
  readonly payer: string;
  /** The client address, by which clients are counted. */
  readonly client: string;
}

/** How a call ended: with a useful answer, with one that shows nothing about the peer, or with a failure. */
export type CallEnd =
  | 'answered'
  | 'inconclusive'
  | {
      readonly failed: string;
      /** The payment that the peer had received and may itself have provoked the failure; absent if nothing was sent. */
      readonly provokedBy?: PaymentSource | undefined;
    };

/** Called once at each opening, with the cause of the last failure, and once at each closing. */
export type OnCircuit = (
  change: { readonly state: 'open'; readonly cause: string } | { readonly state: 'closed' },
) => void;

export interface CircuitBreakerOptions {
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number;
  readonly onCircuit?: OnCircuit;
}

/** The failures of one operation since its last success. */
interface Failures {
  count: number;
  readonly payers: Set<string>;
  readonly clients: Set<string>;
}

/**
 * Five consecutive failures open the circuit for 5 to 30 seconds: calls to the peer are refused. A payment can provoke a
 * failure on purpose, even a time-out, so these failures must be confirmed: by three payers and three clients among them, or
 * by a failure that no payment can provoke. That is one of `supported`, which anyone may ask at any time, or one where nothing
 * reached the peer.
 *
 * A success of any call closes the circuit, one of `supported` only after the pause. A success of `settle` resets the failures
 * of both operations, one of `verify` those of verify.
 */
export function createCircuitBreaker({
  now = () => performance.now(),
  onCircuit = () => {},
}: CircuitBreakerOptions) {
  let verifying = noFailures();
  let settling = noFailures();
  let isOpen = false;
  /** Since an operation that had failed succeeded. */
  let pauses = 0;
  let pauseEndsAt = 0;
  /** Failed while the circuit opened last, and not succeeded since. */
  const unproven = { verify: false, settle: false };
  /** Counts openings and closings: the failure of a call that began before the last one is ignored. */
  let changes = 0;

  const count = (): number => verifying.count + settling.count;
  const areIndependent = (): boolean =>
    verifying.payers.union(settling.payers).size >= sourcesToOpen &&
    verifying.clients.union(settling.clients).size >= sourcesToOpen;
  const pause = (): void => {
    pauseEndsAt = now() + backOffMs({ firstMs: firstPauseMs, longestMs: longestPauseMs }, pauses);
    pauses += 1;
  };
  const open = (cause: string): void => {
    unproven.verify ||= verifying.count > 0;
    unproven.settle ||= settling.count > 0;
    pause();
    isOpen = true;
    changes += 1;
    onCircuit({ state: 'open', cause });
  };
  const close = (): void => {
    verifying = noFailures();
    settling = noFailures();
    isOpen = false;
    changes += 1;
    onCircuit({ state: 'closed' });
  };

  const succeed = (call: CircuitCall): void => {
    if (call === 'supported') {
      if (isOpen && now() >= pauseEndsAt) close();
      return;
    }
    verifying = noFailures();
    unproven.verify = false;
    if (call !== 'verify') {
      settling = noFailures();
      unproven.settle = false;
    }
    if (!unproven.verify && !unproven.settle) pauses = 0;
    if (isOpen) close();
  };
  const fail = (call: CircuitCall, { failed, provokedBy }: Exclude<CallEnd, string>): void => {
    if (isOpen) {
      if (call === 'supported' && now() >= pauseEndsAt) pause();
      return;
    }
    if (call !== 'supported') countFailure(call === 'verify' ? verifying : settling, provokedBy);
    if (count() >= failuresToOpen && (provokedBy === undefined || areIndependent())) open(failed);
  };

  return {
    isOpen: (): boolean => isOpen,
    /** Whether the peer should be asked `supported` now: to confirm failures, or to close the circuit after its pause. */
    needsProbe: (): boolean => (isOpen ? now() >= pauseEndsAt : count() >= failuresToOpen),
    /**
     * Begins a call; the caller reports once, through the returned function, how the call ended. Undefined if the call must
     * not be made: only `verify` is refused. Settling is always allowed, since money may depend on its outcome.
     */
    begin(call: CircuitCall): ((end: CallEnd) => void) | undefined {
      if (isOpen && call === 'verify') return undefined;
      const begunAt = changes;
      return (end) => {
        if (end === 'answered') return succeed(call);
        if (end !== 'inconclusive' && begunAt === changes && call !== 'settle_again') fail(call, end);
      };
    },
  };
}

function noFailures(): Failures {
  return { count: 0, payers: new Set(), clients: new Set() };
}

function countFailure(failures: Failures, source: PaymentSource | undefined): void {
  failures.count += 1;
  if (!source) return;
  if (failures.payers.size < sourcesToOpen) failures.payers.add(source.payer);
  if (failures.clients.size < sourcesToOpen) failures.clients.add(source.client);
}
