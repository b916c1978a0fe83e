import type { AlertCondition } from '../../base/values/alert-condition.ts';
import { countDeadLetters, countedDeadLetters } from '../../ledger/store/alerts.ts';
import type { JobsContext } from './context.ts';
import { brokerConditions } from '../../calls/use-cases/broker-state.ts';
import { listingConditions } from './listing-conditions.ts';
import { listingStatus } from './listings.ts';
import { readPause } from '../../calls/use-cases/pause-runner.ts';
import { rateStatus } from './rate-status.ts';

/** What the operator is alerted about in paid jobs now. */
export async function jobConditions(context: JobsContext): Promise<AlertCondition[]> {
  const [dead, paused] = await Promise.all([deadLetters(context), pausedRunners(context)]);
  return [
    ...dead,
    ...paused,
    ...openCircuit(context),
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
    return [
      {
        kind: state === 'missing' ? 'no_current_rate' : 'rate_old',
        subject: name,
        text,
        details: { detail },
      },
    ];
  });
}

function openCircuit({ facilitator, settings }: JobsContext): AlertCondition[] {
  if (!facilitator.isCircuitOpen()) return [];
  const { host } = new URL(settings.facilitatorUrl);
  const text = `The facilitator ${host} gives no useful answers: payments are refused with 503 until it does.`;
  return [{ kind: 'circuit_open', subject: host, text }];
}
