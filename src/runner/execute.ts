import { factsOf, type ReceivedCall } from './call.ts';
import { InvalidInput, Refuse, ResultTooLarge, RetryLater, RunnerError } from './errors.ts';
import type { Teller } from './hooks.ts';
import type { Job } from './job.ts';
import type { Outcome } from './outcome.ts';
import type { ReportProgress } from './progress.ts';
import { encodeResult, unpriced } from './result.ts';
import type { Slots } from './slots.ts';
import type { Deferred } from '../base/runtime/deferred.ts';

/** How long a handler may run after its abort before it is reported as stuck. */
const stuckAfterMs = 1_000;
const mostAfterSecs = 86_400;

export interface ExecuteOptions {
  readonly slots: Slots;
  readonly timeoutMs: number;
  readonly maxResultBytes: number;
  readonly tell: Teller;
}

interface Execution {
  readonly job: Job;
  readonly call: ReceivedCall;
  readonly controller: AbortController;
  readonly progress: ReportProgress;
  readonly ended: Deferred<Outcome>;
}

/** Runs a handler in the slot that was taken for it, until it answers, its time is up or it is ended. Whatever throws, the slot is freed. */
export async function execute(
  { slots, tell, timeoutMs, maxResultBytes }: ExecuteOptions,
  { job, call, controller, progress, ended }: Execution,
): Promise<Outcome> {
  let timer: NodeJS.Timeout | undefined;
  let isInSlot = true;
  try {
    if (controller.signal.aborted) return await ended.promise;
    const limitMs = job.timeoutMs ?? timeoutMs;
    const message = `the handler did not answer within ${limitMs} ms`;
    timer = setTimeout(() => {
      ended.resolve({ kind: 'retry', code: 'handler_timeout', message });
      controller.abort(new DOMException(message, 'TimeoutError'));
    }, limitMs);
    let answered = false;
    const work = attempt(job, { ...call, progress, signal: controller.signal }, maxResultBytes).then(
      (outcome) => {
        answered = true;
        return outcome;
      },
    );
    const outcome = await Promise.race([work, ended.promise]);
    if (!answered) {
      isInSlot = false;
      abandonHandler(slots, tell, job, call, work);
    }
    return outcome;
  } finally {
    clearTimeout(timer);
    if (isInSlot) slots.release(job);
  }
}

/** An aborted handler frees its slot immediately; a handler that does not end soon is reported. */
function abandonHandler(
  slots: Slots,
  tell: Teller,
  job: Job,
  call: ReceivedCall,
  work: Promise<unknown>,
): void {
  slots.abandon(job);
  const stuckTimer = setTimeout(() => {
    const message = `call ${call.callId}: its handler still runs although it was aborted (${slots.abandoned()} such handlers)`;
    tell.error(new RunnerError('handler_stuck', message, { call: factsOf(call) }));
  }, stuckAfterMs).unref();
  void work.finally(() => {
    clearTimeout(stuckTimer);
    slots.settle();
  });
}

/** Never rejects, whatever a handler throws. */
async function attempt(
  job: Job,
  call: ReceivedCall & { readonly signal: AbortSignal; readonly progress: ReportProgress },
  maxResultBytes: number,
): Promise<Outcome> {
  try {
    const handler = job.handlers.get(call.trigger);
    const { result, price } = unpriced(await handler?.(call));
    const maxBytes = Math.min(maxResultBytes, call.maxResultBytes);
    return { kind: 'completed', result: await encodeResult(result, maxBytes), price };
  } catch (cause) {
    return judge(cause);
  }
}

function judge(cause: unknown): Outcome {
  if (cause instanceof RetryLater) {
    const { message, afterSecs = 0 } = cause;
    const wait = afterSecs > 0 ? { afterSecs: Math.min(afterSecs, mostAfterSecs) } : {};
    return { kind: 'retry', code: 'retry_later', message, cause, ...wait };
  }
  if (cause instanceof InvalidInput)
    return { kind: 'refused', code: 'input_invalid', message: cause.message };
  if (cause instanceof Refuse) return { kind: 'refused', code: 'refused', message: cause.message };
  if (cause instanceof ResultTooLarge)
    return { kind: 'refused', code: 'result_too_large', message: cause.message };
  return { kind: 'retry', code: 'handler_failed', message: 'the handler failed', cause };
}
