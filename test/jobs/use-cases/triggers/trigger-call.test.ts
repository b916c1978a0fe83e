import { describe, expect, onTestFinished, test } from 'vitest';
import { sha256 } from '../../../../src/base/values/sha256.ts';
import { firingKey } from '../../../../src/base/values/triggers/trigger.ts';
import { discardCall } from '../../../../src/calls/use-cases/discard-call.ts';
import { requeueCall } from '../../../../src/calls/use-cases/requeue-call.ts';
import { projectToHead } from '../../../../src/audit/use-cases/projections/project.ts';
import { createRunner, job } from '../../../../src/runner/index.ts';
import { triggerKinds } from '../../../../src/base/values/triggers/trigger.ts';
import { listDeadCalls } from '../../../../src/calls/store/calls.ts';
import { listRefundsDue } from '../../../../src/payments/store/refunds.ts';
import { readCounters } from '../../../../src/ledger/store/counters.ts';
import { readStream } from '../../../../src/ledger/store/streams.ts';
import { triggerCall, type TriggerOrder } from '../../../../src/jobs/use-cases/triggers/trigger-call.ts';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { runnerSecret, startTestGateway } from '../../../support/gateway.ts';
import { expectSound } from '../../../support/invariants.ts';
import { payFor } from '../../../support/payer.ts';
import { startTestRunner } from '../../../support/runner.ts';
import { triggerProcess } from '../../../support/trigger-process.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();
const constants = { delivery: { backoffCapMs: 1, maxAttempts: 3 } };
const order: TriggerOrder = {
  kind: 'cron',
  name: 'nightly',
  id: '2026-11-23T00:00:00Z',
  job: { serviceId: 1, jobIndex: 0 },
  body: Buffer.from('go'),
  contentType: 'text/plain',
};

describe('the call of a trigger', () => {
  test('is recorded in one append, delivered with its origin, and no sale', async () => {
    const database = await createDatabase();
    const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
    await startTestGateway({ database, chain, runnerUrl: runner.url, constants });
    const context = await triggerProcess(chain, database);
    const made = await triggerCall(context, order);
    const key = firingKey(context.quoteRealm.ledgerId, order, sha256('go'));
    expect(made).toEqual({ kind: 'triggered', callId: expect.any(Number) as number, idempotencyKey: key });
    const [delivery] = await eventually(async () => {
      expect(runner.deliveries).toHaveLength(1);
      return runner.deliveries;
    });
    const headers = Object.entries(delivery?.headers ?? {}).filter(([name]) => /^x-(?:x402|net)-/.test(name));
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-net-trigger': 'cron',
      'x-net-trigger-name': 'nightly',
      'x-net-trigger-id': '2026-11-23T00:00:00Z',
      'x-net-idempotency-key': key,
    });
    expect(headers.filter(([name]) => name.startsWith('x-x402-'))).toEqual([]);
    expect(delivery?.headers['webhook-id']).toBe(key);
    const events = await eventually(async () => {
      const { events: all } = await readStream(database.pool, `call:${key}`);
      expect(all).toHaveLength(3);
      return all;
    });
    expect(events.map(({ type }) => type)).toEqual(['call_triggered', 'delivered', 'completed']);
    expect(events[0]?.data).toMatchObject({ body_sha256: sha256('go'), body_bytes: 2, service_id: 1 });
    const { counters } = await readCounters(database.db);
    expect(counters).toMatchObject({ triggered: 1, accepted: 0, completed: 1, quoted: 0 });
    await expectSound(database);
  });

  test('is made once by a hundred simultaneous processes and attempts, and each gets the same call', async () => {
    const database = await createDatabase();
    const contexts = await Promise.all([1, 2, 3, 4].map(() => triggerProcess(chain, database)));
    const made = await Promise.all(
      Array.from({ length: 100 }, (_, n) => triggerCall(contexts[n % 4] ?? contexts[0]!, order)),
    );
    expect(made.filter(({ kind }) => kind === 'triggered')).toHaveLength(1);
    expect(made.filter(({ kind }) => kind === 'repeated')).toHaveLength(99);
    expect(new Set(made.map((one) => 'callId' in one && one.callId)).size).toBe(1);
    expect((await database.pool.query('select from tollbook.call')).rowCount).toBe(1);
    await expectSound(database);
  });

  test('is refused for the same id with another body, and made for the same id of another trigger', async () => {
    const database = await createDatabase();
    const context = await triggerProcess(chain, database);
    await triggerCall(context, order);
    expect(await triggerCall(context, { ...order, body: Buffer.from('stop') })).toEqual({ kind: 'conflict' });
    const others = [{ name: 'hourly' }, { kind: 'webhook' }, { id: '2026-11-24T00:00:00Z' }] as const;
    for (const other of others)
      expect(await triggerCall(context, { ...order, ...other })).toMatchObject({ kind: 'triggered' });
    await expectSound(database);
  });

  test('becomes a dead letter without a refund where its runner refuses it, and can be requeued and given up', async () => {
    const database = await createDatabase();
    const runner = await startTestRunner(() => ({ status: 403, body: 'not wired for calls by cron' }));
    await startTestGateway({ database, chain, runnerUrl: runner.url, constants });
    const context = await triggerProcess(chain, database);
    const made = await triggerCall(context, order);
    const callId = 'callId' in made ? made.callId : 0;
    const dead = () =>
      eventually(async () => {
        const [letter] = await listDeadCalls(database.db, 10);
        expect(letter).toMatchObject({ call_id: callId, trigger: { kind: 'cron', name: 'nightly' } });
      });
    await dead();
    expect(await requeueCall(context, callId)).toEqual({ kind: 'requeued' });
    await eventually(() => expect(runner.deliveries.length).toBeGreaterThanOrEqual(2));
    await dead();
    const by = { why: 'not needed', operator: 'ada' };
    expect(await discardCall(context, callId, by)).toEqual({ kind: 'discarded', money: 'none' });
    await projectToHead(database);
    expect((await database.pool.query('select from tollbook.payment')).rowCount).toBe(0);
    await expectSound(database);
  });

  test.each(['push', 'lease'] as const)(
    'is done by the handler that is wired to its trigger, and any other one becomes a dead letter that says so; only a paid one is refunded (%s)',
    async (mode) => {
      const database = await createDatabase();
      const done: string[] = [];
      const runner = createRunner({
        jobs: [
          job({ serviceId: 1, jobIndex: 0, on: { cron: ({ triggerId }) => void done.push(triggerId) } }),
        ],
      });
      onTestFinished(() => runner.stop({ graceMs: 0 }));
      const poller = `[[runners]]\nservices = [1]\nmode = "lease"\ntoken = "env:RUNNER_TOKEN"`;
      const gateway = await startTestGateway({
        database,
        chain,
        ...(mode === 'push'
          ? { runnerUrl: (await runner.listen({ secret: runnerSecret, port: 0 })).url, constants }
          : { tables: poller, constants }),
      });
      const polled =
        mode === 'lease' ? runner.poll({ gatewayUrl: gateway.url, token: runnerSecret }) : undefined;
      polled?.catch(() => undefined);
      const context = await triggerProcess(chain, database);
      for (const kind of triggerKinds)
        expect(await triggerCall(context, { ...order, kind })).toMatchObject({ kind: 'triggered' });
      const paid = await payFor(gateway, '/x402/jobs/1/0', 'paid');
      expect(paid.status).toBe(202);
      const letters = await eventually(async () => {
        const found = await listDeadCalls(database.db, 10);
        expect(found).toHaveLength(4);
        return found;
      });
      expect(letters.map(({ trigger }) => trigger?.kind ?? 'x402').toSorted()).toEqual([
        'chain',
        'route',
        'webhook',
        'x402',
      ]);
      for (const { trigger, last_error: words } of letters)
        expect(words).toContain(
          `job 1/0 is not wired for calls by ${trigger?.kind ?? 'x402'}, only for: cron`,
        );
      await eventually(() => expect(done).toEqual([order.id]));
      await projectToHead(database);
      const { rows } = await listRefundsDue(database.pool, 0, 10);
      expect(rows).toHaveLength(1);
      await eventually(() => expectSound(database));
    },
  );

  test('has a separate limit: it takes no place of a paid one, and a paid one takes none of its', async () => {
    const database = await createDatabase();
    const limits = '[limits]\nmax_outstanding_calls = 2';
    // nobody takes the calls
    const gateway = await startTestGateway({
      database,
      chain,
      runnerUrl: 'http://127.0.0.1:1/',
      tables: limits,
      constants: { delivery: { backoffBaseMs: 1_800_000 } },
    });
    const context = await triggerProcess(chain, database, limits);
    for (const id of ['a', 'b'])
      expect(await triggerCall(context, { ...order, id })).toMatchObject({ kind: 'triggered' });
    expect(await triggerCall(context, { ...order, id: 'c' })).toEqual({
      kind: 'busy',
      reason: 'outbox_full',
    });
    expect(await triggerCall(context, { ...order, id: 'a' })).toMatchObject({ kind: 'repeated' });
    for (const body of ['paid', 'paid too'])
      expect((await payFor(gateway, '/x402/jobs/1/0', body)).status).toBe(202);
    expect((await payFor(gateway, '/x402/jobs/1/0', 'the third')).status).toBe(503);
    await expectSound(database);
  });
});
