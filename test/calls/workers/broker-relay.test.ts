import { once } from 'node:events';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { boundPort } from '../../../src/devnet/ports.ts';
import { brokerNames } from '../../../src/base/values/broker/names.ts';
import { pauseRunner, resumeRunner } from '../../../src/calls/use-cases/pause-runner.ts';
import { logLines } from '../../support/log-lines.ts';
import { eventually } from '../../support/wait.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { expectSound } from '../../support/invariants.ts';
import { Refuse, RetryLater } from '../../../src/runner/index.ts';
import {
  absence,
  brokerIs,
  consuming,
  gatewayOn,
  startOnBroker,
  managerOn,
  nextMessageOn,
  ownName,
  useNats,
} from '../../app/workers/broker-support.ts';
import { operatorOf, pay, reachesState, typesOf } from '../../app/workers/relay-support.ts';
import { isNatsInstalled, type NatsServer, startNatsCluster } from '../../support/nats.ts';

if (absence) process.stderr.write(`\n*** JETSTREAM${absence}\n\n`);
const chain = useChain();
const nats = useNats();

describe.skipIf(!isNatsInstalled)('calls that go over a broker', () => {
  test('a runner gets its call with all of its metadata, and its result is on the receipt', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain });
    const { calls, errors } = await consuming(
      nats(),
      name,
      (call) => `you said ${call.body.toString()} for ${call.paymentToken}`,
    );
    const call = await pay(gateway, 'a body');
    const receipt = await reachesState(call, 'completed');
    expect(Buffer.from(receipt.result.body_base64, 'base64').toString()).toBe('you said a body for USDC');
    expect(await typesOf(database, call)).toEqual(['delivered', 'completed']);
    expect(calls).toMatchObject([
      { callId: call.callId, attempt: 1, via: 'jetstream', outcome: 'completed' },
    ]);
    expect(errors).toEqual([]);
    await expectSound(database);
  });

  test('a message has exactly the names of metadata that the documents spell', async () => {
    const { name, gateway } = await startOnBroker(nats(), { chain });
    const call = await pay(gateway, 'a body');
    const { headers, data } = await nextMessageOn(nats(), name);
    const names = headers?.keys().filter((key) => !/^(?:nats-|webhook-|content-type$)/i.test(key)) ?? [];
    expect(names.toSorted()).toEqual([
      'X-NET-ATTEMPT',
      'X-NET-CALL-ID',
      'X-NET-IDEMPOTENCY-KEY',
      'X-NET-JOB-INDEX',
      'X-NET-LEASE-ID',
      'X-NET-MAX-RESULT-BYTES',
      'X-NET-PROGRESS-URL',
      'X-NET-SERVICE-ID',
      'X-NET-TRIGGER',
      'X-X402-ORIGIN',
      'X-X402-PAYMENT-ASSET',
      'X-X402-PAYMENT-NETWORK',
      'X-X402-PAYMENT-TOKEN',
      'X-X402-QUOTE-DIGEST',
      'x-net-metadata-signature',
    ]);
    expect(headers?.get('X-X402-ORIGIN')).toBe('x402');
    expect(headers?.get('X-X402-QUOTE-DIGEST')).toBe(call.digest);
    expect(headers?.get('X-NET-CALL-ID')).toBe(String(call.callId));
    expect(Buffer.from(data).toString()).toBe('a body');
  });

  test('a client that has paid sees the handler’s progress while it works', async () => {
    const { name, gateway } = await startOnBroker(nats(), { chain });
    const finish = Promise.withResolvers<string>();
    await consuming(nats(), name, (given) => {
      given.progress({ fraction: 0.5, message: 'half' });
      return finish.promise;
    });
    const call = await pay(gateway);
    await eventually(async () =>
      expect((await call.receipt()).progress).toMatchObject({ fraction: 0.5, message: 'half' }),
    );
    finish.resolve('done');
    expect(await reachesState(call, 'completed')).not.toHaveProperty('progress');
  });

  test('a call that its handler cannot do now is delivered again, and one that it refuses is a dead letter with its words', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain });
    await consuming(nats(), name, ({ body, attempt }) => {
      if (body.toString() === 'no') throw new Refuse('never');
      if (attempt === 1) throw new RetryLater('later');
      return 'done';
    });
    const [again, refused] = [await pay(gateway, 'again'), await pay(gateway, 'no')];
    await reachesState(again, 'completed');
    await reachesState(refused, 'dead_lettered');
    expect(await typesOf(database, again)).toEqual(['delivery_failed', 'delivered', 'completed']);
    await expectSound(database);
  });
});

describe.skipIf(!isNatsInstalled)('while the broker is unreachable or wrong', () => {
  test('calls wait in the database and lose no attempt, one whose publish was stored and never acknowledged too, and each is done once', async () => {
    const own = await startNatsCluster();
    onTestFinished(() => own.stop());
    const [server] = own.servers as [NatsServer];
    const way = await startCutWay(server.url);
    const database = await createDatabase();
    const name = ownName();
    const gateway = await gatewayOn({ urls: [way.url] }, { name, database, chain });
    const manager = await managerOn(own);
    const isStored = way.cutAfter(`HPUB ${name}.calls.`);
    const caught = await pay(gateway);
    await isStored;
    const { state } = await manager.streams.info(brokerNames(name).callStream);
    expect(state.messages).toBe(1);
    await server.kill();
    await brokerIs(gateway, database, false);
    const late = await pay(gateway);
    expect((await gateway.get('/x402/ready')).status).toBe(200);
    await eventually(async () =>
      expect(await readCalls(database)).toEqual([
        { status: 'ready', failures: 0 },
        { status: 'ready', failures: 0 },
      ]),
    );
    await server.start();
    way.restore();
    const keys: string[] = [];
    await consuming(own, name, ({ idempotencyKey }) => void keys.push(idempotencyKey));
    await reachesState(caught, 'completed');
    await reachesState(late, 'completed');
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(2);
    await expectSound(database);
  });

  test('a stream that differs from the configuration, or a payload that is too small, is reported and gets no call', async () => {
    const own = await startNatsCluster({ settings: '' });
    onTestFinished(() => own.stop());
    const database = await createDatabase();
    const name = ownName();
    const names = brokerNames(name);
    const manager = await managerOn(own);
    await manager.streams.add({ name: names.callStream, subjects: [names.everyCall], max_bytes: 1_000_000 });
    const log = logLines();
    const gateway = await gatewayOn(own, { name, database, chain, logger: log.logger, isBrokerUp: false });
    const detail = await eventually(async () => {
      const broker = await brokerIs(gateway, database, false);
      expect(broker.detail).toContain('contradicts the configuration');
      return broker.detail;
    });
    expect(detail).toContain('max_payload of the servers is 1048576 bytes');
    expect(detail).toContain(`the stream ${names.callStream} has retention "limits", not "workqueue"`);
    expect(detail).toContain(`the stream ${names.callStream} has max_bytes 1000000, not 16777216`);
    const call = await pay(gateway);
    expect((await call.receipt()).state).toBe('enqueued');
    expect((await readCalls(database)).map(({ status }) => status)).toEqual(['ready']);
    expect((await manager.streams.info(names.callStream)).state.messages).toBe(0);
    const told = log.lines.filter(
      ({ msg }) => msg === 'the broker contradicts the configuration: its calls wait in the database',
    );
    expect(told).toHaveLength(1);
  });

  test('a gateway starts, and hands its calls over once the broker is there', async () => {
    const own = await startNatsCluster();
    onTestFinished(() => own.stop());
    const [server] = own.servers as [NatsServer];
    await server.kill();
    const database = await createDatabase();
    const name = ownName();
    const gateway = await gatewayOn(own, { name, database, chain, isBrokerUp: false });
    const call = await pay(gateway);
    await server.start();
    await brokerIs(gateway, database, true);
    await consuming(own, name, () => 'done');
    await reachesState(call, 'completed');
    expect(await typesOf(database, call)).toEqual(['delivered', 'completed']);
    await expectSound(database);
  });

  test('a paused runner takes no call from the broker, and gets it once it is resumed', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain, takeWithinSecs: 5 });
    const call = await pay(gateway);
    await eventually(async () =>
      expect((await readCalls(database)).map(({ status }) => status)).toEqual(['leased']),
    );
    await pauseRunner(operatorOf(database), { name: 'worker' }, { operator: 'ops' });
    let runs = 0;
    await consuming(nats(), name, () => void (runs += 1));
    // it goes back, and is not handed over again
    await eventually(async () =>
      expect(await readCalls(database)).toEqual([{ status: 'ready', failures: 0 }]),
    );
    expect(runs).toBe(0);
    await resumeRunner(operatorOf(database), { name: 'worker' }, { operator: 'ops' });
    await reachesState(call, 'completed');
    expect(runs).toBe(1);
    await expectSound(database);
  });
});

async function readCalls({ pool }: TestDatabase) {
  const { rows } = await pool.query<{ status: string; failures: number }>(
    'select status, failures from tollbook.call order by call_id',
  );
  return rows;
}

/** A way to a server that can be cut as soon as something was sent on it, before anything comes back. */
async function startCutWay(serverUrl: string) {
  const target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  let marker: string | undefined;
  let isCut = false;
  let onCut: (() => void) | undefined;
  const way = createServer((client) => {
    const server = connectTcp(Number(target.port), target.hostname);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
    if (isCut) client.destroy();
    client.on('data', (chunk) => {
      if (marker !== undefined && chunk.includes(marker)) {
        isCut = true;
        marker = undefined;
        setTimeout(() => {
          for (const socket of sockets) socket.destroy();
          onCut?.();
        }, 500);
      }
      server.write(chunk);
    });
    server.on('data', (chunk) => {
      if (!isCut) client.write(chunk);
    });
  });
  way.listen(0, '127.0.0.1');
  await once(way, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    way.close();
  });
  return {
    url: `nats://127.0.0.1:${boundPort(way)}`,
    /** Resolves once it is cut, half a second after this text was passed on. */
    cutAfter: (text: string) => {
      marker = text;
      return new Promise<void>((resolve) => (onCut = resolve));
    },
    restore: () => void (isCut = false),
  };
}
