import type { CallFacts } from './call.ts';

/** Thrown by a handler that cannot do the work now: the call is delivered again. */
export class RetryLater extends Error {
  override readonly name: string = 'RetryLater';
  /** The least wait; a polling runner cannot ask for one, there the gateway alone decides. */
  readonly afterSecs: number | undefined;

  constructor(message = 'the runner asks for another try', options?: ErrorOptions & { afterSecs?: number }) {
    super(message, options);
    this.afterSecs = options?.afterSecs;
  }
}

/** Thrown by a handler for a call that no other try would help: it becomes a dead letter, with the message. */
export class Refuse extends Error {
  override readonly name: string = 'Refuse';
}

/** The body does not fit the job's schema. */
export class InvalidInput extends Refuse {
  override readonly name = 'InvalidInput';
}

/** What a handler returned is longer than the runner may answer. */
export class ResultTooLarge extends Error {
  override readonly name = 'ResultTooLarge';
}

export type RunnerErrorCode =
  /** The sender has another secret, or a clock is wrong: nothing was run. */
  | 'signature_refused'
  | 'request_refused'
  | 'call_malformed'
  | 'job_unknown'
  | 'trigger_not_wired'
  | 'input_invalid'
  | 'handler_failed'
  /** A fault of this library or of the Node that it runs on: the call is delivered again. */
  | 'runner_failed'
  | 'handler_timeout'
  /** It was aborted and still runs: it ignores its signal. */
  | 'handler_stuck'
  | 'result_too_large'
  | 'lease_lost'
  /** The gateway did not take the outcome of a call: it will be delivered again. */
  | 'result_undelivered'
  /** The gateway cannot be reached or has an error; polling continues. */
  | 'gateway_unreachable'
  /** The broker cannot be reached, or lacks the gateway's streams; consuming continues. */
  | 'broker_unreachable'
  /** The gateway refuses this runner; polling ends. */
  | 'gateway_refused'
  | 'server_failed';

/** What an operator should know. */
export class RunnerError extends Error {
  override readonly name = 'RunnerError';
  readonly code: RunnerErrorCode;
  readonly call: CallFacts | undefined;

  constructor(code: RunnerErrorCode, message: string, about: { call?: CallFacts; cause?: unknown } = {}) {
    super(message, 'cause' in about ? { cause: about.cause } : undefined);
    this.code = code;
    this.call = about.call;
  }
}
