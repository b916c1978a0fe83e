import type { CallFacts } from './call.ts';
import type { RunnerError } from './errors.ts';
import type { Outcome } from './outcome.ts';

/** How one attempt ended, for a log. */
export interface CallReport extends CallFacts {
  readonly via: 'push' | 'lease' | 'jetstream';
  readonly outcome: Outcome['kind'];
  /** Why it was not completed. */
  readonly code?: string;
  readonly message?: string;
  readonly durationMs: number;
}

/** An operator's log: the library itself prints nothing. Errors thrown by a hook are ignored: no call fails because of a log. */
export interface Hooks {
  /** Called when an attempt has ended. */
  readonly onCall?: ((report: CallReport) => unknown) | undefined;
  /** Called with errors that the runner's operator should look into. */
  readonly onError?: ((error: RunnerError) => unknown) | undefined;
}

export interface Teller {
  readonly call: (report: CallReport) => void;
  readonly error: (error: RunnerError) => void;
}

export function createTeller({ onCall, onError }: Hooks): Teller {
  return { call: (report) => tell(onCall, report), error: (error) => tell(onError, error) };
}

function tell<T>(hook: ((report: T) => unknown) | undefined, report: T): void {
  void (async () => hook?.(report))().catch(() => {});
}
