import type { ChatStatus } from '../chat/chat-status.ts';
import type { JobsStatus } from '../jobs/jobs-status.ts';
import type { Figure, FigureValue } from '../metrics/metrics.ts';
import type { FeatureStatus } from '../http/schemas/status.ts';

/** 1 for what works. */
const flag = ({ ok }: { readonly ok: boolean }): number => (ok ? 1 : 0);

/** The values of paid jobs, from the last check of their status. */
export function jobsFigures(status: () => JobsStatus, isCircuitOpen: () => boolean): Figure[] {
  const byService =
    (read: (service: JobsStatus['outbox']['services'][number]) => number) => (): FigureValue[] =>
      status().outbox.services.map((service) => ({
        labels: { service: String(service.service_id) },
        value: read(service),
      }));
  return [
    {
      name: 'tollbook_facilitator_circuit_open',
      help: '1 while the circuit breaker is open: no payment is started',
      read: () => [{ value: isCircuitOpen() ? 1 : 0 }],
    },
    {
      name: 'tollbook_facilitator_up',
      help: '1 while the facilitator answers and settles every accepted token',
      read: () => [{ value: flag(status().facilitator) }],
    },
    {
      name: 'tollbook_chain_up',
      help: '1 while the RPC of this network answers for its chain',
      labels: ['network'],
      read: () =>
        Object.entries(status().chains).map(([network, check]) => ({
          labels: { network },
          value: flag(check),
        })),
    },
    {
      name: 'tollbook_calls_waiting',
      help: 'Calls that are due and not leased, or whose lease has ended, by service; at most 10,000 are counted',
      labels: ['service'],
      read: byService((service) => service.waiting_calls),
    },
    {
      name: 'tollbook_call_oldest_waiting_seconds',
      help: 'How long the oldest call that is due has waited, by service',
      labels: ['service'],
      read: byService((service) => service.oldest_waiting_ms / 1_000),
    },
    {
      name: 'tollbook_calls_dead',
      help: 'Dead letters, which wait for an operator; at most 10,000 are counted',
      read: () => [{ value: status().outbox.dead_calls }],
    },
    {
      name: 'tollbook_runner_paused',
      help: '1 while deliveries to this runner are paused',
      labels: ['runner'],
      read: () =>
        status().runners.map(({ name, is_paused }) => ({
          labels: { runner: name },
          value: is_paused ? 1 : 0,
        })),
    },
  ];
}

/** The values of chats, from what is known of their upstreams. */
export function chatFigures(status: () => ChatStatus): Figure[] {
  return [
    {
      name: 'tollbook_model_up',
      help: '1 while an upstream of this model has a circuit that is not open',
      labels: ['model'],
      read: () =>
        Object.entries(status().models).map(([model, check]) => ({ labels: { model }, value: flag(check) })),
    },
    {
      name: 'tollbook_operator_ether_sufficient',
      help: "1 while the operator's key has ether enough to land and pay out spends; missing where no spends are accepted",
      read: () => {
        const { spend_auth: spends } = status();
        return spends ? [{ value: flag(spends) }] : [];
      },
    },
  ];
}

/** The values of the log. */
export function logFigures(status: () => FeatureStatus['log']): Figure[] {
  return [
    {
      name: 'tollbook_anchor_behind_events',
      help: 'Sealed events that the last checkpoint of this anchor does not cover',
      labels: ['anchor'],
      read: () =>
        Object.entries(status()?.anchors ?? {}).map(([anchor, { behind_events }]) => ({
          labels: { anchor },
          value: behind_events,
        })),
    },
    {
      name: 'tollbook_anchor_up',
      help: '1 while this anchor lacks no checkpoint that is older than its interval and five minutes',
      labels: ['anchor'],
      read: () =>
        Object.entries(status()?.anchors ?? {}).map(([anchor, check]) => ({
          labels: { anchor },
          value: flag(check),
        })),
    },
  ];
}
