import { openPaidCalls } from '../../ledger/store/ledger.ts';
import type { JobsContext } from './context.ts';

/** A runner that polls takes a call within this time, if its policy says no other. */
const usualSilenceSecs = 60;

interface WaitingService {
  readonly service_id: number;
  readonly waiting_calls: number;
}

export interface UntakenService {
  readonly serviceId: number;
  readonly calls: number;
  readonly silentSecs: number;
}

/** The services whose calls wait while no runner has taken one for longer than their policies expect. */
export function untakenServices(
  { runnerSilence, catalog }: Pick<JobsContext, 'runnerSilence' | 'catalog'>,
  waiting: readonly WaitingService[],
): UntakenService[] {
  const jobs = [...catalog.values()];
  return waiting.flatMap(({ service_id: serviceId, waiting_calls: calls }) => {
    const expected = jobs
      .filter((job) => job.serviceId === serviceId && job.maxRunnerSilenceSecs > 0)
      .map((job) => job.maxRunnerSilenceSecs);
    const silentSecs = runnerSilence.secsOf(serviceId);
    return silentSecs >= Math.min(usualSilenceSecs, ...expected) ? [{ serviceId, calls, silentSecs }] : [];
  });
}

/** The hosts of paid routes that their circuit breakers keep from being asked. */
export function failingUpstreams({
  settings,
  upstreams,
}: Pick<JobsContext, 'settings' | 'upstreams'>): string[] {
  const urls = new Set([...(settings.routes?.all.values() ?? [])].map(({ upstream }) => upstream));
  return [...urls].filter((url) => upstreams.of(url).isFailing()).map((url) => new URL(url).host);
}

/** What keeps the ledger from taking one more payment. */
export function fullOutbox(context: Pick<JobsContext, 'lane' | 'config'>): string[] {
  const { maxOutstandingCalls, maxUnsettledCalls } = context.config.limits;
  const { unsettledCalls } = context.lane.state;
  const paidCalls = openPaidCalls(context);
  return [
    ...(paidCalls >= maxOutstandingCalls ? [`full: ${paidCalls} calls`] : []),
    ...(unsettledCalls >= maxUnsettledCalls ? [`full: ${unsettledCalls} payments without an outcome`] : []),
  ];
}
