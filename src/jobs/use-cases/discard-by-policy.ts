import { jobKey } from '../../base/values/job.ts';
import type { JobsContext } from './context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { changeEach, maxChanged } from './dead-letters.ts';
import { discardOne } from './discard-calls.ts';
import { findOldDeadLetters } from '../../calls/store/dead-letters.ts';

/** Who gave a call up, for the record, where the policy of its job did. */
const operator = 'policy';

/**
 * Gives up the dead letters that the policies of their jobs do not keep: one batch of each job. Returns whether there may be more. Many
 * processes may do it at the same time: each call is given up once.
 */
export async function discardByPolicy(
  context: Pick<JobsContext, 'db' | 'lane' | 'pool' | 'settings' | 'log'>,
): Promise<boolean> {
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
