import type { JobsContext } from './context.ts';
import { type BatchReport, type BatchStep, changeDeadLetters, type DeadLetterBatch } from './dead-letters.ts';
import { type DiscardRecord, discardDeadLetter } from './discard-call.ts';

export interface DiscardBatch extends DeadLetterBatch {
  /** Nothing is changed: the report says what would be. */
  readonly isDryRun: boolean;
  readonly by: DiscardRecord;
}

/** `not_dead`: it was requeued or discarded meanwhile. */
export type DiscardReport = BatchReport<'not_dead'>;

/** Gives up one batch of the dead letters that are meant. */
export async function discardCalls(
  context: Pick<JobsContext, 'db' | 'lane' | 'pool'>,
  batch: DiscardBatch,
): Promise<DiscardReport> {
  return changeDeadLetters(context.db, batch, async (callId) =>
    batch.isDryRun ? { kind: 'done' } : discardOne(context, callId, batch.by),
  );
}

/** Gives one dead letter up. */
export async function discardOne(
  context: Pick<JobsContext, 'db' | 'lane' | 'pool'>,
  callId: number,
  by: DiscardRecord,
): Promise<BatchStep<'not_dead'>> {
  const { kind } = await discardDeadLetter(context, callId, by);
  return kind === 'discarded' ? { kind: 'done' } : { kind: 'skipped', why: 'not_dead' };
}
