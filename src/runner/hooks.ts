import type { CallFacts } from './call.ts';
import type { RunnerError } from './errors.ts';
import type { Outcome } from './outcome.ts';

/** How one attempt ended, for a log. */
export interface CallReport extends CallFacts {
  readonly via: 'push' | 'lease';
  readonly outcome: Outcome['kind'];
  /** Why it was not completed: a word and a sentence. */
  readonly code?: string;
  readonly message?: string;
  readonly durationMs: number;
}

/** An operator's log: the library itself prints nothing. What a hook throws is ignored: no call fails for a log. */
export interface Hooks {
  /** Told of each attempt when it has ended. */
  readonly onCall?: ((report: CallReport) => unknown) | undefined;
  /** Told of what somebody should look after. */
  readonly onError?: ((error: RunnerError) => unknown) | undefined;
}

export interface Teller {
  readonly call: (report: CallReport) => void;
  readonly error: (error: RunnerError) => void;
}

export function createTeller({ onCall, onError }: Hooks): Teller {
  return { call: (report) => tell(onCall, report), error: (error) => tell(onError, error) };
}

function tell<T>(hook: ((told: T) => unknown) | undefined, told: T): void {
  void (async () => hook?.(told))().catch(() => {});
}
