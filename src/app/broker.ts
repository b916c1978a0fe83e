import type { RunnerConfig } from '../base/config/config.ts';
import { answerLeaseRequest, takeResult } from '../calls/use-cases/broker-messages.ts';
import type { JobsContext } from '../jobs/use-cases/context.ts';
import type { BrokerState } from '../calls/peers/broker/broker.ts';
import { openBroker } from '../calls/peers/broker/nats-broker.ts';
import { type BrokerRelay, startBrokerRelay } from '../calls/workers/broker-relay.ts';
import type { Loop } from '../ledger/workers/loop.ts';

/** The broker of the runners with `mode = "jetstream"`, with the function that publishes calls. */
export interface RunningBroker {
  readonly relays: readonly Loop[];
  readonly state: () => BrokerState;
  /** After the relays have stopped. */
  close(): Promise<void>;
}

/** Undefined if no runner takes its calls from a broker. */
export function startBroker(context: JobsContext, current: () => JobsContext): RunningBroker | undefined {
  const { config, log } = context;
  const { jetstream: settings } = config;
  const runners = config.runners.filter(({ mode }) => mode === 'jetstream');
  if (!settings || runners.length === 0) return undefined;
  const relays = new Map<string, BrokerRelay>();
  const find = (name: string): RunnerConfig | undefined =>
    current().config.runners.find((runner) => runner.name === name && runner.mode === 'jetstream');

  const broker = openBroker({
    settings,
    runners: runners.map(({ name }) => name),
    maxBodyBytes: Math.max(config.limits.maxBodyBytes, config.delivery.maxResultBytes),
    onState: (state) => logState(context, state),
    async onResult(name, message) {
      const runner = find(name);
      if (!runner) return 'done';
      try {
        await takeResult(current(), runner, message);
        return 'done';
      } catch (err) {
        log.error({ err, runner: name }, 'a result on the broker could not be recorded: it is tried again');
        return 'again';
      }
    },
    async onLeaseRequest(name, message) {
      const runner = find(name);
      if (!runner) return undefined;
      try {
        const answered = await answerLeaseRequest(current(), runner, message);
        if (answered && answered.taken.length > 0) relays.get(name)?.noteTaken(answered.taken);
        return answered?.answer;
      } catch (err) {
        log.error({ err, runner: name }, 'a lease request on the broker could not be answered');
        return undefined;
      }
    },
  });
  for (const runner of runners)
    relays.set(runner.name, startBrokerRelay(context, runner, current, broker, settings));
  return { relays: [...relays.values()], state: broker.state, close: broker.close };
}

function logState({ log }: JobsContext, state: BrokerState): void {
  switch (state.kind) {
    case 'ready':
      return log.info({}, 'the broker takes calls');
    case 'away':
      return log.warn(
        { detail: state.detail },
        'the broker cannot be reached: its calls wait in the database',
      );
    case 'wrong':
      return log.error(
        { mistakes: state.mistakes },
        'the broker contradicts the configuration: its calls wait in the database',
      );
    case 'refusing':
      return log.warn({ detail: state.detail }, 'the broker does not store calls: they wait in the database');
  }
}
