import { randomUUID } from 'node:crypto';
import type { Config, JobsConfig, RouteConfig } from '../../../base/config/config.ts';
import { type JobId, jobKey } from '../../../base/values/job.ts';
import type { Address } from '../../../base/values/primitives.ts';
import type { RouteLease } from '../../../calls/store/route-calls.ts';
import { type AttemptPorts, recordAttempt } from '../../../calls/use-cases/record-attempt.ts';
import type { FirstLease } from '../../../payments/rules/settlement.ts';
import type { StartedPayment } from '../../../payments/use-cases/record-settlement.ts';
import type { BoundRequest } from '../job-request.ts';
import { paidCall } from './call-headers.ts';

/**
 * The lease with which a request serves the call that it settles: begun in the same append, so that the upstream is asked two commits earlier.
 * Undefined for calls that are ordered by a key: those wait for their turn.
 */
export function firstLease(
  { settings, config }: { readonly settings: JobsConfig; readonly config: Config },
  job: JobId,
  route: Pick<RouteConfig, 'leaseSecs'>,
): FirstLease | undefined {
  if (settings.jobPolicies.get(jobKey(job))?.orderBy !== undefined) return undefined;
  const leaseSecs = Math.min(route.leaseSecs, config.delivery.maxCallAgeSecs);
  return { leaseId: randomUUID(), leaseMs: leaseSecs * 1_000 };
}

/** The call as `leaseRouteCall()` returns it, on record with its `delivered`. */
export function leasedByRequest(
  request: Pick<BoundRequest, 'bodySha256'>,
  job: JobId,
  started: StartedPayment & { readonly callId: number },
  { leaseId, leaseMs }: FirstLease,
  caller: Address | undefined,
): RouteLease {
  return {
    ...paidCall(request, job, started, { attempt: 1, caller }),
    leaseId,
    failures: 0,
    leaseUntil: new Date(Date.now() + leaseMs),
    traceparent: undefined,
  };
}

/** The request is over without an answer of the upstream: the same payment sent again finds its call free. */
export async function giveBack(context: AttemptPorts, lease: RouteLease): Promise<void> {
  await recordAttempt(context, lease, { kind: 'runner_left' }, { isFirstNews: false, runner: undefined });
}
