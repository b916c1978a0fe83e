import type { AlertCondition } from '../../base/values/alert-condition.ts';
import type { BrokerState } from '../peers/broker/broker.ts';
import type { Config } from '../../base/config/config.ts';

/** What is wrong with the broker; undefined where nothing is. */
export function describeBroker(state: BrokerState): string | undefined {
  switch (state.kind) {
    case 'ready':
      return undefined;
    case 'away':
      return `away: ${state.detail}`;
    case 'wrong':
      return `contradicts the configuration: ${state.mistakes.join('; ')}`;
    case 'refusing':
      return `does not store calls: ${state.detail}`;
  }
}

/** While the broker takes no calls, those of its runners wait. */
export function brokerConditions({
  brokerState,
  config,
}: {
  readonly brokerState: () => BrokerState | undefined;
  readonly config: Config;
}): AlertCondition[] {
  const state = brokerState();
  const detail = state && describeBroker(state);
  if (detail === undefined) return [];
  const text =
    'The broker takes no calls: those of its runners wait in the database, and none is lost or refunded. ' +
    'Look at its servers and at `/status`.';
  return [
    { kind: 'broker_trouble', subject: config.jetstream?.name ?? 'jetstream', text, details: { detail } },
  ];
}
