import { randomUUID } from 'node:crypto';
import { jetstream, type JsMsg } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { brokerNames } from '../../../src/base/values/broker/names.ts';
import { sealResult } from '../../../src/base/values/broker/result-message.ts';
import { openLeaseAnswer, sealLeaseRequest } from '../../../src/base/values/broker/lease-messages.ts';
import { type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { runnerSecret } from '../../support/gateway.ts';
import { expectSound } from '../../support/invariants.ts';
import { logLines } from '../../support/log-lines.ts';
import { isNatsInstalled } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { connectTo, consuming, startOnBroker, managerOn, nextMessageOn, useNats } from './broker-support.ts';
import { pay, reachesState, typesOf } from './relay-support.ts';

const chain = useChain();
const nats = useNats();

/** Someone with an account on the broker, but without the runner's token. */
async function stranger(name: string) {
  const connection = await connectTo(nats());
  return { connection, stream: jetstream(connection), names: brokerNames(name) };
}

function nextMessage(name: string): Promise<JsMsg> {
  return nextMessageOn(nats(), name);
}

/** Puts a copy of a message on its subject, under its own id. */
async function repeatMessage(name: string, message: JsMsg, change: Readonly<Record<string, string>> = {}) {
  const { stream } = await stranger(name);
  const copied = headers();
  for (const key of message.headers?.keys() ?? [])
    if (!key.startsWith('Nats-')) copied.set(key, message.headers?.get(key) ?? '');
  for (const [key, value] of Object.entries(change)) copied.set(key, value);
  await stream.publish(message.subject, message.data, { headers: copied, msgID: randomUUID() });
}

function nowSecs(): number {
  return Math.floor(Date.now() / 1_000);
}

interface LeaseRow {
  call_id: number;
  lease_id: string;
  status: string;
  failures: number;
  due_at: Date;
}

/** The lease of the only call, and its id. */
async function leaseOf({ pool }: TestDatabase) {
  const { rows } = await pool.query<LeaseRow>(
    'select call_id::int, lease_id, status, failures, due_at from tollbook.call',
  );
  const [row] = rows;
  if (!row) throw new Error('there is no call');
  return row;
}

describe.skipIf(!isNatsInstalled)('others on the broker', () => {
  test('cannot forge a call or change one: a runner runs what the gateway signed and nothing else', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain });
    const call = await pay(gateway, 'the body');
    const message = await nextMessage(name);
    const bodies: string[] = [];
    const { errors } = await consuming(nats(), name, ({ body }) => void bodies.push(body.toString()));
    const { stream } = await stranger(name);
    await stream.publish(message.subject, 'a body of my own', { msgID: randomUUID() });
    await repeatMessage(name, message, { 'X-NET-CALL-ID': '7' });
    await repeatMessage(name, message, { 'X-NET-LEASE-ID': randomUUID() });
    // beside the one that is signed, in another spelling
    await repeatMessage(name, message, { 'x-net-call-id': '7' });
    await eventually(() =>
      expect(errors.map(({ code }) => code)).toEqual(Array(4).fill('signature_refused')),
    );
    expect(bodies).toEqual([]);
    message.nak();
    await reachesState(call, 'completed');
    expect(bodies).toEqual(['the body']);
    await expectSound(database);
  });

  test('cannot run a call twice with a copy of its message: the first runner that takes it has it alone', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain });
    const call = await pay(gateway);
    const message = await nextMessage(name);
    await repeatMessage(name, message);
    await repeatMessage(name, message);
    message.nak();
    let runs = 0;
    const handler = async () => {
      runs += 1;
    };
    const [one, other] = [await consuming(nats(), name, handler), await consuming(nats(), name, handler)];
    await reachesState(call, 'completed');
    const manager = await managerOn(nats());
    // the copies are gone too
    await eventually(async () =>
      expect((await manager.streams.info(brokerNames(name).callStream)).state.messages).toBe(0),
    );
    expect(runs).toBe(1);
    expect([...one.errors, ...other.errors]).toEqual([]);
    await expectSound(database);
  });

  test('cannot complete a call: a result that the runner did not sign, or of another lease, is not taken', async () => {
    const log = logLines();
    const { database, name, gateway } = await startOnBroker(nats(), { chain, logger: log.logger });
    const call = await pay(gateway);
    await nextMessage(name);
    const { call_id: callId, lease_id: leaseId } = await leaseOf(database);
    const { stream, names } = await stranger(name);
    const outcome = {
      kind: 'completed',
      contentType: 'text/plain',
      price: undefined,
      body: Buffer.from('mine'),
    } as const;
    const send = (message: Uint8Array) =>
      stream.publish(names.resultSubject('worker'), message, { msgID: randomUUID() });
    const said = (message: string) => log.lines.filter(({ msg }) => msg === message).length;
    await send(sealResult('a-token-that-the-stranger-made-up-himself', { callId, leaseId, outcome }));
    const changed = Buffer.concat([sealResult(runnerSecret, { callId, leaseId, outcome }), Buffer.from('!')]);
    await send(changed);
    await eventually(() => expect(said('a result on the broker was not signed by its runner')).toBe(2));
    await send(sealResult(runnerSecret, { callId, leaseId: randomUUID(), outcome }));
    await eventually(() =>
      expect(said('a result on the broker came too late: another attempt has its call')).toBe(1),
    );
    expect((await call.receipt()).state).toBe('enqueued');
    expect((await leaseOf(database)).status).toBe('leased');
    await expectSound(database);
  });

  test('cannot take a call, or read an answer of the gateway as one to another request', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain });
    await pay(gateway);
    await nextMessage(name);
    const { call_id: callId, lease_id: leaseId } = await leaseOf(database);
    const { connection, names } = await stranger(name);
    const wishes = [{ callId, leaseId, newLeaseId: randomUUID() }];
    const request = { nonce: randomUUID(), atSecs: nowSecs(), leaseSecs: 60, wishes };
    const ask = (message: Uint8Array, timeout = 30_000) =>
      connection.request(names.leaseSubject('worker'), message, { timeout });
    const forged = sealLeaseRequest('a-token-that-the-stranger-made-up-himself', request);
    await expect(ask(forged, 2_000)).rejects.toThrow(/timeout/i);
    expect((await leaseOf(database)).lease_id).toBe(leaseId);
    const answer = await ask(sealLeaseRequest(runnerSecret, request));
    const [grant] = openLeaseAnswer(runnerSecret, request, answer.data) ?? [];
    if (grant?.kind !== 'held') throw new Error('the lease is not held');
    // what is left of the lease when its row has been written
    expect(grant.lastsMs).toBeGreaterThan(30_000);
    expect(grant.lastsMs).toBeLessThanOrEqual(60_000);
    expect(openLeaseAnswer(runnerSecret, { ...request, nonce: randomUUID() }, answer.data)).toBeUndefined();
    // the same wish again is the same lease; another one is too late
    const again = await ask(sealLeaseRequest(runnerSecret, request));
    expect(openLeaseAnswer(runnerSecret, request, again.data)).toMatchObject([{ kind: 'held' }]);
    const late = { ...request, wishes: [{ callId, leaseId, newLeaseId: randomUUID() }] };
    const refused = await ask(sealLeaseRequest(runnerSecret, late));
    expect(openLeaseAnswer(runnerSecret, late, refused.data)).toEqual([{ kind: 'lost' }]);
  });
});

describe.skipIf(!isNatsInstalled)('a copy of a lease request', () => {
  test('that is older than a few minutes does not extend the lease of a runner that is gone', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain });
    await pay(gateway);
    await nextMessage(name);
    const { call_id: callId, lease_id: leaseId } = await leaseOf(database);
    const { connection, names } = await stranger(name);
    const wishes = [{ callId, leaseId, newLeaseId: randomUUID() }];
    const request = { nonce: randomUUID(), atSecs: nowSecs(), leaseSecs: 3_600, wishes };
    const copied = sealLeaseRequest(runnerSecret, request);
    const ask = (timeout: number) => connection.request(names.leaseSubject('worker'), copied, { timeout });
    const answer = await ask(30_000);
    expect(openLeaseAnswer(runnerSecret, request, answer.data)).toMatchObject([{ kind: 'held' }]);
    await database.moveClock(400);
    // once the gateway knows the time
    await eventually(async () => {
      const { due_at: endsAt } = await leaseOf(database);
      await expect(ask(2_000)).rejects.toThrow(/timeout/i);
      expect((await leaseOf(database)).due_at).toEqual(endsAt);
    });
    await expectSound(database);
  });
});

describe.skipIf(!isNatsInstalled)('a call whose lease ends while its message is in the broker', () => {
  test('is driven again from the database, and a late copy of its first message gives it to no runner', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain });
    const call = await pay(gateway);
    const first = await nextMessage(name);
    await database.moveClock(200);
    const second = await nextMessage(name);
    expect(second.headers?.get('X-NET-ATTEMPT')).toBe('2');
    const key = first.headers?.get('X-NET-IDEMPOTENCY-KEY');
    expect(key).toMatch(/^0x[0-9a-f]{64}$/);
    expect(second.headers?.get('X-NET-IDEMPOTENCY-KEY')).toBe(key);
    const attempts: number[] = [];
    await consuming(nats(), name, ({ attempt }) => void attempts.push(attempt));
    first.nak();
    const manager = await managerOn(nats());
    await eventually(async () => {
      const info = await manager.consumers.info(brokerNames(name).callStream, 'worker');
      expect(info.num_ack_pending).toBe(1);
    });
    expect(attempts).toEqual([]);
    second.nak();
    await reachesState(call, 'completed');
    expect(attempts).toEqual([2]);
    expect(await typesOf(database, call)).toEqual(['delivered', 'completed']);
    await expectSound(database);
  });

  test('is given back without losing an attempt where no runner takes it in time', async () => {
    const { database, name, gateway } = await startOnBroker(nats(), { chain, takeWithinSecs: 5 });
    const call = await pay(gateway);
    // handed over anew, each time with the same idempotency key
    await eventually(async () => {
      const types = await typesOf(database, call);
      expect(types.slice(0, 2)).toEqual(['delivery_failed', 'delivery_failed']);
    });
    expect((await leaseOf(database)).failures).toBe(0);
    await consuming(nats(), name, () => 'done');
    await reachesState(call, 'completed');
    await expectSound(database);
  });

  test('is not completed by the runner that lost it: its late result changes nothing', async () => {
    const log = logLines();
    const { database, name, gateway } = await startOnBroker(nats(), { chain, logger: log.logger });
    const call = await pay(gateway);
    let release: (() => void) | undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const attempts: number[] = [];
    await consuming(
      nats(),
      name,
      async ({ attempt }) => {
        attempts.push(attempt);
        if (attempt === 1) await held;
        return `of attempt ${attempt}`;
      },
      { leaseSecs: 600 },
    );
    await eventually(() => expect(attempts).toEqual([1]));
    const { call_id: callId, lease_id: leaseId } = await leaseOf(database);
    await database.moveClock(700);
    const { stream, names } = await stranger(name);
    const outcome = {
      kind: 'completed',
      contentType: 'text/plain',
      price: undefined,
      body: Buffer.from('late'),
    } as const;
    await eventually(async () => expect((await leaseOf(database)).lease_id).not.toBe(leaseId));
    await stream.publish(
      names.resultSubject('worker'),
      sealResult(runnerSecret, { callId, leaseId, outcome }),
    );
    await eventually(() =>
      expect(log.lines.map(({ msg }) => msg)).toContain(
        'a result on the broker came too late: another attempt has its call',
      ),
    );
    expect((await call.receipt()).state).toBe('enqueued');
    release?.();
    await expectSound(database);
  });
});
