import { progressUrlHeader } from '../base/values/progress-token.ts';
import { createLeaseClient } from './lease-client.ts';
import { createReporter, type ReportProgress } from './progress.ts';

/**
 * Reports the progress of a call that came by itself, pushed or over a broker, to the address in its signed metadata. Undefined where a
 * gateway of an earlier version names none.
 * @param token proves the lease: never the runner's own
 */
export function createReporterOf(
  metadata: Readonly<Record<string, string>>,
  leaseId: string,
  token: string,
  ended: AbortSignal,
): ReportProgress | undefined {
  const url = metadata[progressUrlHeader];
  if (url === undefined || !URL.canParse(url) || !/^https?:/.test(url)) return undefined;
  const client = createLeaseClient(url, token);
  return createReporter((said, options) => client.post('', { lease_id: leaseId, ...said }, options), ended);
}
