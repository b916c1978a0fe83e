import { discoveryKey } from '../../base/values/discovery.ts';
import type { PassedOn } from '../../payments/rules/x402.ts';
import { type Job, jobResource } from './catalog.ts';
import type { JobsContext } from './context.ts';
import type { BoundRequest } from './job-request.ts';

/**
 * What a payment's requests to the facilitator carry beside the payment: the client's extensions as they came, except for the entry
 * by which the facilitator lists the job. That is always ours: what a client writes there would be published under our address.
 */
export function passedOn(
  { publicUrl }: Pick<JobsContext, 'publicUrl'>,
  { sent }: Pick<BoundRequest, 'sent'>,
  job: Job,
): PassedOn {
  const sentExtensions = sent.kind === 'decoded' ? sent.decoded.extensions : undefined;
  const { [discoveryKey]: _, ...others } = sentExtensions ?? {};
  if (!job.discovery) return { extensions: others };
  return {
    resource: jobResource(publicUrl(), job),
    extensions: { ...others, [discoveryKey]: job.discovery.extension },
  };
}
