import type { AlertCondition } from '../../base/values/alert-condition.ts';
import { countDeadLetters, countedDeadLetters } from '../../ledger/store/alerts.ts';
import type { JobsContext } from './context.ts';
import { describeBroker } from '../../calls/peers/broker/broker.ts';
import { failingUpstreams, fullOutbox, untakenServices } from './delivery-trouble.ts';
import type { JobsStatus } from './jobs-status.ts';
import { listingStatus, type GoneListing, type ListingStatus } from './listings.ts';
import { readPause } from '../../calls/use-cases/pause-runner.ts';
import { rateStatus } from './rates.ts';

/** What the operator is alerted about in paid jobs now: also what `/status` calls degraded. */
export async function jobConditions(context: JobsContext, status: JobsStatus): Promise<AlertCondition[]> {
  const [dead, paused] = await Promise.all([deadLetters(context), pausedRunners(context)]);
  return [
    ...dead,
    ...paused,
    ...facilitatorTrouble(context, status),
    ...chainTrouble(status),
    ...untakenCalls(context, status),
    ...failingDeliveries(context),
    ...unreachableUpstreams(context),
    ...outboxFull(context),
    ...brokerConditions(context),
    ...rates(context),
    ...listingConditions(listingStatus(context)),
  ];
}

/** One for each service, until the last of its dead letters is requeued or given up. */
async function deadLetters({ db }: JobsContext): Promise<AlertCondition[]> {
  const services = await countDeadLetters(db);
  return services.map(({ service_id: service, calls, call_id: callId, reason, runner, error }) => {
    const count = calls >= countedDeadLetters ? `${calls} or more` : String(calls);
    const words = error === null ? '' : `, ${error}`;
    const text =
      `Service ${service} has dead letters, ${count}; the newest is call ${callId} (${reason ?? 'unknown'}${words}). ` +
      'See `tollbook calls dead`; requeue or discard them.';
    const details = { service_id: service, calls, call_id: callId, reason, runner, last_error: error };
    return { kind: 'dead_letters', subject: `service ${service}`, text, details };
  });
}

async function pausedRunners(context: JobsContext): Promise<AlertCondition[]> {
  const { runners } = context.config;
  const pauses = await Promise.all(runners.map((runner) => readPause(context, runner)));
  return pauses.flatMap((pause, index) => {
    const name = runners[index]?.name;
    if (!pause || name === undefined) return [];
    const by = pause.operator === undefined ? 'it answered 410' : `by ${pause.operator}`;
    const text = `The runner ${name} is paused (${by}): its calls wait. Resume it with \`tollbook runners resume ${name}\`.`;
    return [{ kind: 'runner_paused', subject: name, text, details: { reason: pause.reason } }];
  });
}

function rates(context: JobsContext): AlertCondition[] {
  return rateStatus(context.rates).flatMap(({ name, state, detail = '' }): AlertCondition[] => {
    if (state === 'current') return [];
    const text =
      state === 'missing'
        ? `${name} is not offered: it has no current rate. Look at its sources.`
        : `The fixed rate of ${name} is old: set the present one and reload, or allow a longer age.`;
    const kind = state === 'missing' ? 'no_current_rate' : 'rate_old';
    return [{ kind, subject: name, text, details: { detail } }];
  });
}

/** A peer that is asked every five seconds has given no useful answer for this long. */
const patienceMs = 10_000;

function lasts({ ok, since }: JobsStatus['facilitator']): boolean {
  return !ok && Date.now() - Date.parse(since) >= patienceMs;
}

/** Whether every peer that is asked all the time has given a useful answer, or none for so long that it is an alert. */
export function arePeersKnown({ facilitator, chains }: JobsStatus): boolean {
  return [facilitator, ...Object.values(chains)].every((peer) => peer.ok || lasts(peer));
}

/** Each is asked also without a payment. An open circuit breaker refuses payments now, unless another facilitator takes them. */
function facilitatorTrouble({ facilitators }: JobsContext, status: JobsStatus): AlertCondition[] {
  const states = facilitators.states();
  const { detail = '' } = status.facilitator;
  const troubled = states.filter(
    ({ isCircuitOpen, trouble }) =>
      isCircuitOpen || (lasts(status.facilitator) && (trouble !== undefined || states.length === 1)),
  );
  const consequence =
    troubled.length < states.length
      ? 'new payments are given to the others; what it was given already stays unknown until it answers or the chain decides.'
      : 'payments that it must settle are refused with 503, uncharged.';
  return troubled.map(({ label }) => ({
    kind: 'facilitator_trouble',
    subject: label,
    text: `The facilitator ${label} gives no useful answers (${detail}): ${consequence}`,
    details: { detail },
  }));
}

function chainTrouble({ chains }: JobsStatus): AlertCondition[] {
  return Object.entries(chains).flatMap(([network, chain]): AlertCondition[] => {
    if (!lasts(chain)) return [];
    const { detail = '' } = chain;
    const text =
      `The RPC of ${network} gives no useful answers (${detail}): settlements are not confirmed and ` +
      'unknown payments stay unknown until it does. Replace `rpc_url` or ask its operator.';
    return [{ kind: 'chain_trouble', subject: network, text, details: { detail } }];
  });
}

function untakenCalls(context: JobsContext, { outbox }: JobsStatus): AlertCondition[] {
  return untakenServices(context, outbox.services).map(({ serviceId, calls, silentSecs }) => {
    const text =
      `${calls} calls of service ${serviceId} wait, and for ${silentSecs} seconds no runner has taken one. ` +
      'Start its runners; the calls become dead letters, and their refunds due, after `max_call_age_secs`.';
    const details = { service_id: serviceId, calls, silent_secs: silentSecs };
    return { kind: 'calls_waiting', subject: `service ${serviceId}`, text, details };
  });
}

function failingDeliveries({ failureRuns }: JobsContext): AlertCondition[] {
  return failureRuns.long().map(({ runner, failures, reason }) => {
    const text = `The runner ${runner} has failed ${failures} times in a row (${reason}): its calls are delivered again. Look at its log.`;
    const details = { runner, failures, reason };
    return { kind: 'deliveries_failing', subject: runner, text, details };
  });
}

function unreachableUpstreams(context: JobsContext): AlertCondition[] {
  return failingUpstreams(context).map((host) => {
    const text = `The upstream ${host} of paid routes cannot be reached: requests for it are refused before payment.`;
    return { kind: 'upstream_trouble', subject: host, text };
  });
}

function outboxFull(context: JobsContext): AlertCondition[] {
  const problems = fullOutbox(context);
  if (problems.length === 0) return [];
  const text = `Payments are refused with 503, uncharged: the outbox is ${problems.join('; ')}. See \`tollbook calls\` and \`tollbook settlements\`.`;
  return [{ kind: 'outbox_full', subject: '', text }];
}

/** While the broker takes no calls, those of its runners wait. */
function brokerConditions({ brokerState, config }: JobsContext): AlertCondition[] {
  const state = brokerState();
  const detail = state && describeBroker(state);
  if (detail === undefined) return [];
  const text =
    'The broker takes no calls: those of its runners wait in the database, and none is lost or refunded. ' +
    'Look at its servers and at `/status`.';
  const subject = config.jetstream?.name ?? 'jetstream';
  return [{ kind: 'broker_trouble', subject, text, details: { detail } }];
}

/** More are counted. */
const mostNamed = 10;

/** What the operator is alerted about in the listings: one alert if all are gone, else one for each service that lost some. */
export function listingConditions(status: ListingStatus | undefined): AlertCondition[] {
  if (!status) return [];
  const { host, unknown, services } = status;
  const lost = [...services].filter(([, { gone }]) => gone.length > 0);
  const hasSome = [...services.values()].some(({ listed, missed }) => listed.length + missed.length > 0);
  const gone = lost.flatMap(([, { gone: jobs }]) => jobs);
  return [
    ...(hasSome ? lost.map(([service, { gone: jobs }]) => listingMissing(host, service, jobs)) : []),
    ...(!hasSome && gone.length > 0 ? [listingGone(host, gone)] : []),
    ...(unknown === undefined ? [] : [discoveryUnknown(host, unknown)]),
  ];
}

function listingGone(host: string, gone: readonly GoneListing[]): AlertCondition {
  const text =
    `${host} lists none of the jobs any more that it listed: agents that search there do not find this gateway. ` +
    remedy(gone);
  return { kind: 'listing_gone', subject: host, text, details: detailsOf(host, gone) };
}

function listingMissing(host: string, service: number, gone: readonly GoneListing[]): AlertCondition {
  const text = `${host} does not list these jobs any more: ${named(gone)}. ${remedy(gone)}`;
  const details = { service_id: service, ...detailsOf(host, gone) };
  return { kind: 'listing_missing', subject: `service ${service}`, text, details };
}

function discoveryUnknown(host: string, problem: string): AlertCondition {
  const text = `Whether ${host} lists this gateway is not known: its answers are not conclusive (${problem}).`;
  return { kind: 'discovery_unknown', subject: host, text, details: { problem } };
}

function remedy(gone: readonly GoneListing[]): string {
  return gone.some(({ hasOtherPayee }) => hasOtherPayee)
    ? 'Some are listed there with other payees: see the runbook.'
    : 'The next payment of a job carries its entry there again, if the service belongs to the facilitator.';
}

function detailsOf(host: string, gone: readonly GoneListing[]): Record<string, string | number> {
  const sinceSecs = Math.min(...gone.map((job) => job.sinceSecs));
  const others = gone.filter(({ hasOtherPayee }) => hasOtherPayee);
  return {
    host,
    jobs: named(gone),
    missing_since: new Date(sinceSecs * 1_000).toISOString(),
    ...(others.length > 0 && { with_other_payees: named(others) }),
  };
}

function named(gone: readonly GoneListing[]): string {
  const names = gone.slice(0, mostNamed).map(({ job }) => job);
  const more = gone.length - names.length;
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ');
}
