import type { BatchReport } from '../../../calls/use-cases/dead-letters.ts';
import type { RequeueRefusal } from '../../../calls/use-cases/requeue-call.ts';

/** One request goes through as many batches as fit into this time; the next one begins after them. */
const longestMs = 20_000;
/** The most that a report lists. */
const mostListed = 200;

export type SkipReason = RequeueRefusal['kind'];

export const skipTexts: Readonly<Record<SkipReason, string>> = {
  not_dead: 'it is no longer a dead letter',
  refunded: 'its payment was refunded, so it is not delivered',
  refund_under_way: 'a refund of its payment is being sent, so it is not delivered',
  unpaid: 'its payment is not settled at present',
};

export interface BatchesDone {
  readonly done: number;
  readonly skips: number;
  /** The first of them. */
  readonly skipped: readonly { readonly callId: number; readonly why: SkipReason }[];
  /** The call id after which there are more; undefined after the last dead letter. */
  readonly next: number | undefined;
}

/** Goes through batch after batch. */
export async function runBatches(
  after: number,
  step: (after: number) => Promise<BatchReport<SkipReason>>,
): Promise<BatchesDone> {
  const untilMs = performance.now() + longestMs;
  const skipped: { callId: number; why: SkipReason }[] = [];
  let [done, skips] = [0, 0];
  let next: number | undefined = after;
  while (next !== undefined && performance.now() < untilMs) {
    const report: BatchReport<SkipReason> = await step(next);
    done += report.done;
    skips += report.skipped.length;
    skipped.push(...report.skipped.slice(0, mostListed - skipped.length));
    ({ next } = report);
  }
  return { done, skips, skipped, next };
}
