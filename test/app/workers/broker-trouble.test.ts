import { jetstream } from '@nats-io/jetstream';
import { InvalidArgumentError } from '@nats-io/transport-node';
import { describe, expect, onTestFinished, test } from 'vitest';
import { brokerNames } from '../../../src/base/values/broker/names.ts';
import type { BrokerStream } from '../../../src/runner/broker.ts';
import { createRunner, job } from '../../../src/runner/index.ts';
import { runnerSecret } from '../../support/gateway.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { expectSound } from '../../support/invariants.ts';
import { logLines } from '../../support/log-lines.ts';
import { isNatsInstalled } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import {
  brokerIs,
  connectTo,
  consuming,
  gatewayOn,
  startOnBroker,
  managerOn,
  ownName,
  useNats,
} from './broker-support.ts';
import { pay, type PaidCall, reachesState, typesOf } from './relay-support.ts';

const chain = useChain();
const nats = useNats();

describe.skipIf(!isNatsInstalled)('a broker in trouble', () => {
  test('whose stream is full is reported to the operator, is tried again with ever longer pauses, and every call is done once there is room', async () => {
    const database = await createDatabase();
    const name = ownName();
    const log = logLines();
    const gateway = await gatewayOn(nats(), {
      name,
      database,
      chain,
      logger: log.logger,
      maxBytes: 1_048_576,
    });
    const calls: PaidCall[] = [];
    for (let n = 0; n < 6; n += 1) calls.push(await pay(gateway, 'x'.repeat(400_000)));
    const { detail } = await brokerIs(gateway, database, false);
    expect(detail).toBe('does not store calls: maximum bytes exceeded');
    // the calls that came together, then one after 1, 2 and 4 seconds
    const refused = await eventually(async () => {
      const times = await refusalTimes(database);
      expect(Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? 0)))).toBeGreaterThan(3_500);
      return times;
    });
    expect(refused.length).toBeLessThan(12);
    const told = log.lines.filter(
      ({ msg }) => msg === 'the broker does not store calls: they wait in the database',
    );
    expect(told).toHaveLength(1);
    await consuming(nats(), name, () => 'done');
    for (const call of calls) await reachesState(call, 'completed');
    await brokerIs(gateway, database, true);
    await expectSound(database);
  });

  test('whose stream was deleted has it again a second later, once a slow server has removed the files of the old one', async () => {
    const log = logLines();
    const { name } = await startOnBroker(nats(), { chain, logger: log.logger });
    const manager = await managerOn(nats());
    const { callStream } = brokerNames(name);
    const beforeMs = Date.now();
    await manager.streams.delete(callStream);
    const { created } = await eventually(() => manager.streams.info(callStream));
    expect(Date.parse(created) - beforeMs).toBeGreaterThan(950);
    const told = log.lines.filter(
      ({ msg }) => msg === 'the broker cannot be reached: its calls wait in the database',
    );
    expect(told.map(({ detail }) => detail)).toEqual([
      `the stream ${callStream} was deleted: the gateway makes it again in a moment`,
    ]);
  });

  test.each(['stream', 'consumer'] as const)(
    'whose %s was deleted has it again without a restart, and every call is done',
    async (what) => {
      const { database, name, gateway } = await startOnBroker(nats(), { chain, takeWithinSecs: 5 });
      const manager = await managerOn(nats());
      const { callStream } = brokerNames(name);
      const inside = await pay(gateway);
      await eventually(async () => expect((await manager.streams.info(callStream)).state.messages).toBe(1));
      if (what === 'stream') await manager.streams.delete(callStream);
      else await manager.consumers.delete(callStream, 'worker');
      const later = await pay(gateway);
      await consuming(nats(), name, () => 'done');
      for (const call of [inside, later]) await reachesState(call, 'completed');
      expect(await typesOf(database, later)).toEqual(expect.arrayContaining(['delivered', 'completed']));
      await expectSound(database);
    },
  );
});

describe.skipIf(!isNatsInstalled)('a broken runner on a broker', () => {
  test('whose token is wrong keeps no call from the runners of the right one', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain });
    const connection = await connectTo(nats());
    const refused: string[] = [];
    const broken = createRunner({
      jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: () => 'mine' } })],
      onError: ({ code }) => refused.push(code),
    });
    onTestFinished(() => broken.stop({ graceMs: 0 }));
    const stream = jetstream(connection);
    const token = 'a-token-that-was-replaced-long-ago';
    void broken.consume({ connection, jetstream: stream, runner: 'worker', token, name });
    const call = await pay(gateway);
    await eventually(() => expect(refused).toContain('signature_refused'));
    const manager = await managerOn(nats());
    const { state } = await manager.streams.info(brokerNames(name).callStream);
    expect(state.messages).toBe(1);
    await broken.stop({ graceMs: 0 });
    await consuming(nats(), name, () => 'done');
    await reachesState(call, 'completed');
    expect(await typesOf(database, call)).toEqual(['delivered', 'completed']);
    await expectSound(database);
  });

  test('whose result became too large for the broker gives its call back as a dead letter instead of holding it for ever', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain });
    const connection = await connectTo(nats());
    const stream = jetstream(connection);
    const told: string[] = [];
    const runner = createRunner({
      jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: () => Buffer.alloc(100_000) } })],
      onError: ({ code, message }) => told.push(`${code}: ${message}`),
    });
    onTestFinished(() => runner.stop({ graceMs: 0 }));
    const publish: BrokerStream['publish'] = async (subject, payload, options) => {
      // as the client does, once the servers have another max_payload
      if (payload.length > 50_000) throw new InvalidArgumentError('max_payload size exceeded');
      return stream.publish(subject, payload, options);
    };
    const narrow = { publish, consumers: stream.consumers };
    void runner.consume({ connection, jetstream: narrow, runner: 'worker', token: runnerSecret, name });
    const call = await pay(gateway);
    await reachesState(call, 'dead_lettered');
    expect(told).toEqual([
      'result_undelivered: call 1: the broker did not take its outcome: max_payload size exceeded',
    ]);
    await expectSound(database);
  });
});

/** When calls were given back, in milliseconds. */
async function refusalTimes({ pool }: TestDatabase): Promise<number[]> {
  const { rows } = await pool.query<{ at: number }>(
    "select extract(epoch from at)::float8 * 1000 as at from tollbook.event where type = 'delivery_failed' order by seq",
  );
  return rows.map(({ at }) => at);
}
