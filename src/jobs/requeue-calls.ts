import { type DeadLetterFilter, findDeadCalls } from '../store/calls.ts';
import type { JobsContext } from './context.ts';
import { checkRequeue, requeueCall, type RequeueRefusal } from './requeue-call.ts';

/** The most dead letters of one batch. */
export const maxRequeued = 500;
/** So many at the same time: their appends share the lane's batches. */
const atOnce = 32;

export interface RequeueBatch {
  readonly filter: DeadLetterFilter;
  /** The call id behind which the batch begins. */
  readonly after: number;
  readonly max: number;
  /** Nothing is changed: the report says what would be. */
  readonly isDryRun: boolean;
  /** Of the operator's token. */
  readonly tokenId?: number;
}

export interface RequeueReport {
  readonly requeued: number;
  readonly skipped: readonly { readonly callId: number; readonly why: RequeueRefusal['kind'] }[];
  /** The call id behind which the next batch begins; undefined behind the last dead letter. */
  readonly next: number | undefined;
}

/** Puts one batch of the dead letters that match back in the queue. */
export async function requeueCalls(
  context: Pick<JobsContext, 'db' | 'lane' | 'pool'>,
  { filter, after, max, isDryRun, tokenId }: RequeueBatch,
): Promise<RequeueReport> {
  const callIds = await findDeadCalls(context.db, filter, after, max);
  const skipped: { callId: number; why: RequeueRefusal['kind'] }[] = [];
  let requeued = 0;
  for (let from = 0; from < callIds.length; from += atOnce) {
    const some = callIds.slice(from, from + atOnce);
    const ends = await Promise.all(
      some.map((callId) =>
        isDryRun ? checkRequeue(context, callId) : requeueCall(context, callId, tokenId),
      ),
    );
    for (const [index, { kind }] of ends.entries()) {
      if (kind === 'requeued' || kind === 'possible') requeued++;
      else skipped.push({ callId: some[index] ?? 0, why: kind });
    }
  }
  return { requeued, skipped, next: callIds.length < max ? undefined : callIds.at(-1) };
}
