import { describe, expect, test } from 'vitest';
import type { ConstantChanges } from '../../../src/base/config/constants.ts';
import { requeueCall } from '../../../src/calls/use-cases/requeue-call.ts';
import { listDeadCalls } from '../../../src/calls/store/calls.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { expectSound } from '../../support/invariants.ts';
import { type Reaction, startTestRunner, type TestRunner } from '../../support/runner.ts';
import { eventually } from '../../support/wait.ts';
import { operatorOf, pay, reachesState, spendEventsOf, typesOf } from './relay-support.ts';

const chain = useChain();
const done: Reaction = { status: 200, body: 'done' };

function gatewayOn(
  database: TestDatabase,
  { url: runnerUrl }: TestRunner,
  delivery: ConstantChanges['delivery'] = {},
) {
  const constants = { delivery: { backoffCapMs: 1, ...delivery } };
  return startTestGateway({ database, chain, runnerUrl, constants });
}

/** Of the call's row, while the call waits. */
function waitingCall({ db }: TestDatabase) {
  return db
    .selectFrom('tollbook.call')
    .select(['status', 'attempt', 'failures', 'last_reason', 'last_runner'])
    .executeTakeFirst();
}

const attemptsOf = ({ deliveries }: TestRunner) => deliveries.map(({ attempt }) => attempt);

describe('a runner that answers 503, because it is busy', () => {
  const full: Reaction = { status: 503, headers: { 'retry-after': '3600' } };

  test('costs a call no attempt: it is delivered again, with the same id, and the operator sees why it waits', async () => {
    const database = await createDatabase();
    const runner = await startTestRunner(({ attempt }) => (attempt <= 2 ? { status: 503 } : done));
    const gateway = await gatewayOn(database, runner, { maxAttempts: 2 });
    const call = await pay(gateway);
    await eventually(async () =>
      expect(await waitingCall(database)).toEqual({
        status: 'ready',
        attempt: 1,
        failures: 0,
        last_reason: 'status_503',
        last_runner: 'runner-1',
      }),
    );
    await database.moveClock(100);
    await reachesState(call, 'completed');
    expect(attemptsOf(runner)).toEqual([1, 2, 3]);
    expect(new Set(runner.deliveries.map(({ id }) => id)).size).toBe(1);
    expect(await spendEventsOf(database, call)).toMatchObject([
      { type: 'delivery_failed', data: { attempt: 1, reason: 'status_503', retry_at: expect.any(Number) } },
      { type: 'delivery_failed', data: { attempt: 2, reason: 'status_503', retry_at: expect.any(Number) } },
      { type: 'delivered', data: { attempt: 3 } },
      { type: 'completed', data: { attempt: 3 } },
    ]);
    await expectSound(database);
  });

  test('gets no other call from that process for as long as it asks, and another process tries it with its own', async () => {
    const database = await createDatabase();
    let isBusy = true;
    const runner = await startTestRunner(() => (isBusy ? full : done));
    const gateway = await gatewayOn(database, runner);
    const refused = await pay(gateway);
    await eventually(async () => expect(await typesOf(database, refused)).toEqual(['delivery_failed']));
    const later = [await pay(gateway), await pay(gateway)];
    // each payment makes its relay look at once, and stop() lets it look to the end
    await gateway.stop();
    expect(attemptsOf(runner)).toEqual([1]);
    isBusy = false;
    const other = await gatewayOn(database, runner);
    for (const call of later) await reachesState(call, 'completed', other);
    await database.moveClock(3_601);
    await reachesState(refused, 'completed', other);
    await expectSound(database);
  });

  test('costs a requeued dead letter no attempt either, however often it was tried before', async () => {
    const database = await createDatabase();
    const answers: Reaction[] = [{ status: 500 }, { status: 500 }, { status: 503 }, { status: 503 }];
    const runner = await startTestRunner(({ attempt }) => answers[attempt - 1] ?? done);
    const gateway = await gatewayOn(database, runner, { maxAttempts: 2 });
    const call = await pay(gateway);
    await reachesState(call, 'dead_lettered');
    expect(await requeueCall(operatorOf(database), call.callId)).toMatchObject({ kind: 'requeued' });
    for (const attempt of [3, 4]) {
      await eventually(async () =>
        expect(await waitingCall(database)).toMatchObject({ status: 'ready', attempt, failures: 0 }),
      );
      await database.moveClock(100 * attempt);
    }
    await reachesState(call, 'completed');
    expect(attemptsOf(runner)).toEqual([1, 2, 3, 4, 5]);
    await expectSound(database);
  });

  test('for ever does not keep a call for ever: after as many such answers as a call has attempts, each costs one', async () => {
    const database = await createDatabase();
    const runner = await startTestRunner(() => ({ status: 503 }));
    const gateway = await gatewayOn(database, runner, { maxAttempts: 2 });
    const call = await pay(gateway);
    for (const attempt of [1, 2]) {
      await eventually(async () =>
        expect(await waitingCall(database)).toMatchObject({ attempt, failures: 0 }),
      );
      await database.moveClock(100 * attempt);
    }
    await reachesState(call, 'dead_lettered');
    expect(attemptsOf(runner)).toEqual([1, 2, 3, 4]);
    expect(await listDeadCalls(database.db, 10)).toMatchObject([
      { last_reason: 'attempts_exhausted', last_error: 'status 503' },
    ]);
    await expectSound(database);
  });
});
