import type { RunnerErrorCode } from './errors.ts';
import type { EncodedResult } from './result.ts';

/** What came of a call. */
export type Outcome = Completed | Retry | Refused | Lost;

export interface Completed {
  readonly kind: 'completed';
  readonly result: EncodedResult | undefined;
  /** What it costs, as the handler says. */
  readonly price: string | undefined;
}

/** Deliver it again. */
export interface Retry {
  readonly kind: 'retry';
  readonly code:
    | 'retry_later'
    | 'handler_failed'
    | 'handler_timeout'
    | 'runner_failed'
    | 'runner_full'
    | 'runner_stopping';
  /** Also for the gateway's operator; contains no text of a client. */
  readonly message: string;
  readonly afterSecs?: number;
  /** Only for this runner's operator. */
  readonly cause?: unknown;
}

/** Never deliver it again: a dead letter. */
export interface Refused {
  readonly kind: 'refused';
  readonly code:
    | 'refused'
    | Extract<
        RunnerErrorCode,
        'job_unknown' | 'trigger_not_wired' | 'input_invalid' | 'result_too_large' | 'call_malformed'
      >;
  readonly message: string;
}

/** It belongs to another attempt now. */
export interface Lost {
  readonly kind: 'lost';
  readonly code: 'lease_lost';
  readonly message: string;
}

export const stoppingOutcome: Retry = {
  kind: 'retry',
  code: 'runner_stopping',
  message: 'the runner is stopping',
  afterSecs: 1,
};
