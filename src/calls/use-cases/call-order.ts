import { jobKey } from '../../base/values/job.ts';
import { sha256 } from '../../base/values/sha256.ts';
import type { JobPolicy, JobsConfig } from '../../base/config/config.ts';
import type { CallOrder } from '../../ledger/store/lane-command.ts';
import type { JobTurn, LeasedCall } from '../store/calls.ts';
import type { AttemptPorts } from './record-attempt.ts';

const headerPrefix = 'header:';

/**
 * The key by which a call is ordered; undefined for one that is ordered with no other: its policy names none, or its request lacks the header.
 * @param caller the authorized one, of a restricted job
 */
export function callOrder(
  policy: JobPolicy | undefined,
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  caller: string | undefined,
): CallOrder | undefined {
  const { orderBy } = policy ?? {};
  if (policy === undefined || orderBy === undefined) return undefined;
  const value = orderBy.startsWith(headerPrefix)
    ? headers[orderBy.slice(headerPrefix.length).toLowerCase()]
    : orderBy === 'caller'
      ? caller
      : 'job';
  if (value === undefined) return undefined;
  const { maxPerKey: limit, skipAfterFailures } = policy;
  return {
    // of bounded length, and nothing that a client sent
    key: sha256(JSON.stringify([jobKey(policy), orderBy, value])).slice(2),
    limit,
    keepsPlace: skipAfterFailures === 'never',
    maxFailures: skipAfterFailures === 'never' ? undefined : skipAfterFailures,
  };
}

/**
 * Releases the other calls of a call's key once it has failed as often as its policy permits. Leases that ended without an outcome count: a call
 * that kills its runners reports no outcome.
 */
export async function passTurn({ config, lane }: AttemptPorts, call: LeasedCall): Promise<void> {
  const { skipAfterFailures } = config.jobs?.jobPolicies.get(jobKey(call)) ?? {};
  if (skipAfterFailures === undefined || skipAfterFailures === 'never' || call.failures < skipAfterFailures)
    return;
  const { stream, callId, leaseId } = call;
  await lane.append({ stream, events: [], call: { op: 'check', callId, leaseId } }, { urgent: true });
}

/** The jobs whose policy gives them a priority or a limit. */
export function jobTurns({ jobPolicies }: Pick<JobsConfig, 'jobPolicies'>): JobTurn[] {
  const policies = [...jobPolicies.values()];
  return policies.filter(({ priority, maxConcurrent }) => priority !== 0 || maxConcurrent !== undefined);
}
