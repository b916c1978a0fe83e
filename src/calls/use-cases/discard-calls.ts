import type { JobsConfig } from '../../base/config/config.ts';
import { jobKey } from '../../base/values/job.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { type Ledger, nowSecs } from '../../ledger/store/ledger.ts';
import { findOldDeadLetters } from '../store/dead-letters.ts';
import {
  type BatchReport,
  type BatchStep,
  changeDeadLetters,
  changeEach,
  type DeadLetterBatch,
  maxChanged,
} from './dead-letters.ts';
import { type DiscardRecord, discardDeadLetter } from './discard-call.ts';

export interface DiscardBatch extends DeadLetterBatch {
  /** Nothing is changed: the report says what would be. */
  readonly isDryRun: boolean;
  readonly by: DiscardRecord;
}

/** `not_dead`: it was requeued or discarded meanwhile. */
export type DiscardReport = BatchReport<'not_dead'>;

/** Gives up one batch of the dead letters that are meant. */
export async function discardCalls(context: Ledger, batch: DiscardBatch): Promise<DiscardReport> {
  return changeDeadLetters(context.db, batch, async (callId) =>
    batch.isDryRun ? { kind: 'done' } : discardOne(context, callId, batch.by),
  );
}

/** Gives one dead letter up. */
async function discardOne(
  context: Ledger,
  callId: number,
  by: DiscardRecord,
): Promise<BatchStep<'not_dead'>> {
  const { kind } = await discardDeadLetter(context, callId, by);
  return kind === 'discarded' ? { kind: 'done' } : { kind: 'skipped', why: 'not_dead' };
}

/** Who gave a call up, for the record, where the policy of its job did. */
const operator = 'policy';

export interface PolicyPorts extends Ledger {
  readonly settings: JobsConfig;
  readonly log: OperatorLog;
}

/**
 * Gives up the dead letters that the policies of their jobs do not keep: one batch of each job. Returns whether there may be more. Many
 * processes may do it at the same time: each call is given up once.
 */
export async function discardByPolicy(context: PolicyPorts): Promise<boolean> {
  let isMore = false;
  for (const policy of context.settings.jobPolicies.values()) {
    if (policy.onDead !== 'discard') continue;
    const { serviceId, jobIndex, discardAfterSecs } = policy;
    const before = new Date((nowSecs(context) - discardAfterSecs) * 1_000);
    const job = jobKey(policy);
    const why = `the policy of job ${job} gives dead letters up after ${discardAfterSecs} seconds`;
    const old = await findOldDeadLetters(context.db, { serviceId, jobIndex }, before, maxChanged);
    const { done } = await changeEach(old, (callId) => discardOne(context, callId, { why, operator }));
    if (done > 0) context.log.info({ job, calls: done }, 'dead letters given up by the policy of their job');
    isMore ||= old.length === maxChanged;
  }
  return isMore;
}
