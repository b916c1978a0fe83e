import { expect, test } from 'vitest';
import { discardCall } from '../../../src/calls/use-cases/discard-call.ts';
import { listDeadCalls } from '../../../src/calls/store/calls.ts';
import { asRunner, failCall, leaseOne, leasingRunner } from '../../support/leases.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { operatorOf, pay, typesOf } from '../../app/workers/relay-support.ts';

const chain = useChain();

const start = (database: TestDatabase) => startTestGateway({ database, chain, tables: leasingRunner });

test('a completion of a call that was given up is refused, also if a process died after it had stored the result', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  const call = await pay(gateway);
  const { lease_id: leaseId } = await leaseOne(gateway);
  const stored = [call.callId, 1, leaseId, 'text/plain', Buffer.from('done')];
  await database.pool.query('select tollbook.put_result($1, $2, $3, $4, $5)', stored);
  await database.moveClock(61);
  const by = { operator: 'ops', why: 'the runner is gone' };
  expect(await discardCall(operatorOf(database), call.callId, by)).toMatchObject({ kind: 'discarded' });
  const late = await asRunner(gateway, `/runner/calls/${call.callId}/complete`, { lease_id: leaseId });
  expect(late).toMatchObject({ status: 409, json: { code: 'lease_lost' } });
  expect(await typesOf(database, call)).toEqual(['delivered', 'dead_lettered', 'operator_discarded']);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('what a runner says of a failure is recorded, also if its 500th character is half of a surrogate pair', async () => {
  const database = await createDatabase();
  const gateway = await start(database);
  await pay(gateway);
  const leased = await leaseOne(gateway);
  const error = `${'x'.repeat(499)}😀`;
  await failCall(gateway, leased, { error });
  expect(await listDeadCalls(database.db, 10)).toMatchObject([{ last_error: 'x'.repeat(499) }]);
});
