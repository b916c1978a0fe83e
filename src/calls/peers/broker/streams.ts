import type { ConsumerConfig, JetStreamManager, StreamConfig } from '@nats-io/jetstream';
import type { JetStreamConfig } from '../../../base/config/jetstream.ts';
import { type BrokerNames, brokerNames } from '../../../base/values/broker/names.ts';

const nanosPerSec = 1_000_000_000;
/** In which a message id is stored once; not longer than a message lives. */
const duplicateSecs = 120;
/** A runner has so long to take a call that it received, and gateways to record a result. */
const ackSecs = 30;

type Settings = Pick<JetStreamConfig, 'name' | 'replicas' | 'maxBytes' | 'takeWithinSecs'>;
type OwnStream = Pick<
  StreamConfig,
  | 'name'
  | 'subjects'
  | 'retention'
  | 'storage'
  | 'discard'
  | 'num_replicas'
  | 'max_bytes'
  | 'max_age'
  | 'duplicate_window'
>;
type OwnConsumer = Pick<
  ConsumerConfig,
  'durable_name' | 'ack_policy' | 'ack_wait' | 'filter_subject' | 'max_deliver' | 'max_ack_pending'
>;

/**
 * Creates the streams and consumers that are missing. Returns how those that exist differ from what the configuration says: they are not
 * changed. Throws if the broker does not answer, and if a stream was deleted: only the next call creates it again. A server that still
 * removes the files of the old one (2.9) would remove those of the new one as well, and then counts its messages and delivers none.
 * @param seen the streams that exist as far as is known; empty at first
 */
export async function prepareStreams(
  manager: JetStreamManager,
  settings: Settings,
  runners: readonly string[],
  seen: Set<string>,
): Promise<string[]> {
  const names = brokerNames(settings.name);
  const mistakes: string[] = [];
  for (const stream of streamsOf(names, settings))
    mistakes.push(...(await prepareStream(manager, stream, seen)));
  const consumers = [
    ...runners.map((runner) => [names.callStream, consumerOf(runner, names.callsOf(runner))] as const),
    [names.resultStream, consumerOf(names.resultConsumer, names.everyResult)] as const,
  ];
  if (mistakes.length > 0) return mistakes;
  for (const [stream, consumer] of consumers)
    mistakes.push(...(await prepareConsumer(manager, stream, consumer)));
  return mistakes;
}

function streamsOf(names: BrokerNames, settings: Settings): readonly OwnStream[] {
  const both = {
    // a message is gone once it is acknowledged
    retention: 'workqueue',
    storage: 'file',
    // a full stream refuses: no message is dropped for another
    discard: 'new',
    num_replicas: settings.replicas,
    max_bytes: settings.maxBytes,
  } as const;
  const { takeWithinSecs } = settings;
  return [
    {
      ...both,
      name: names.callStream,
      subjects: [names.everyCall],
      max_age: takeWithinSecs * nanosPerSec,
      duplicate_window: Math.min(duplicateSecs, takeWithinSecs) * nanosPerSec,
    },
    {
      ...both,
      name: names.resultStream,
      subjects: [names.everyResult],
      max_age: 0,
      duplicate_window: duplicateSecs * nanosPerSec,
    },
  ];
}

function consumerOf(name: string, subject: string): OwnConsumer {
  return {
    durable_name: name,
    filter_subject: subject,
    ack_policy: 'explicit',
    ack_wait: ackSecs * nanosPerSec,
    max_deliver: -1,
    max_ack_pending: 10_000,
  };
}

async function prepareStream(
  manager: JetStreamManager,
  wanted: OwnStream,
  seen: Set<string>,
): Promise<string[]> {
  const { name } = wanted;
  const found = await unlessMissing(() => manager.streams.info(name));
  if (!found && seen.delete(name))
    throw new Error(`the stream ${name} was deleted: the gateway makes it again in a moment`);
  if (found) {
    seen.add(name);
    return differences(`stream ${name}`, wanted, found.config);
  }
  try {
    await manager.streams.add(wanted);
    seen.add(name);
    return [];
  } catch (error) {
    // one server alone
    if (!/not supported in non-clustered mode/.test((error as Error).message)) throw error;
    return [
      `the stream ${wanted.name} cannot have ${wanted.num_replicas} replicas: the broker is not a cluster`,
    ];
  }
}

async function prepareConsumer(
  manager: JetStreamManager,
  stream: string,
  wanted: OwnConsumer,
): Promise<string[]> {
  const name = wanted.durable_name ?? '';
  const found = await unlessMissing(() => manager.consumers.info(stream, name));
  if (found) return differences(`consumer ${name} of stream ${stream}`, wanted, found.config);
  await manager.consumers.add(stream, wanted);
  return [];
}

async function unlessMissing<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (/not found/i.test((error as Error).message)) return undefined;
    throw error;
  }
}

function differences(what: string, wanted: object, found: object): string[] {
  return Object.entries(wanted).flatMap(([key, value]) => {
    const has: unknown = Reflect.get(found, key);
    const [expected, present] = [JSON.stringify(value), JSON.stringify(has)];
    return expected === present ? [] : [`the ${what} has ${key} ${present ?? 'unset'}, not ${expected}`];
  });
}
