import type { Ledger } from '../../ledger/store/ledger.ts';
import { type BatchReport, changeDeadLetters, type DeadLetterBatch } from './dead-letters.ts';
import { checkRequeue, requeueCall, type RequeuedBy, type RequeueRefusal } from './requeue-call.ts';

export interface RequeueBatch extends DeadLetterBatch {
  /** Nothing is changed: the report says what would be. */
  readonly isDryRun: boolean;
  readonly by?: RequeuedBy;
}

export type RequeueReport = BatchReport<RequeueRefusal['kind']>;

/** Puts one batch of the dead letters that are meant back in the queue. */
export async function requeueCalls(context: Ledger, batch: RequeueBatch): Promise<RequeueReport> {
  return changeDeadLetters(context.db, batch, async (callId) => {
    const { kind } = await (batch.isDryRun
      ? checkRequeue(context, callId)
      : requeueCall(context, callId, batch.by));
    return kind === 'requeued' || kind === 'possible' ? { kind: 'done' } : { kind: 'skipped', why: kind };
  });
}
