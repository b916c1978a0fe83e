import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { documentOf } from '../../support/documented.ts';
import { type Answer, startTestGateway, startWithDatabase } from '../../support/gateway.ts';
import { asRunner, leasingRunner } from '../../support/leases.ts';
import { header, offerOf, signOffer } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

/** The refusals of each route are held against the document in its own tests: `isDocumented` of `startTestGateway`. */
const chain = useChain();
const job = '/x402/jobs/1/0';
const leased = { chain, isDocumented: true, tables: leasingRunner };
const anyLease = '00000000-0000-4000-8000-000000000000';
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const seen = ({ status, json }: Answer): unknown[] => [status, json?.code];

test('an undocumented key, header, code or status is found', async () => {
  const check = await documentOf(await startTestGateway({ database: await createDatabase(), chain }));
  const headers = new Headers({ 'content-type': 'application/json' });
  const answer = (status: number, json: object) => ({ status, headers, text: JSON.stringify(json) });
  const error = 'There is no job of this name.';
  expect(check('POST', job, answer(404, { error, code: 'job_not_found' }))).toEqual([]);
  expect(check('POST', job, answer(404, { error, code: 'job_not_found', more: 1 }))).not.toEqual([]);
  expect(check('POST', job, answer(404, { error, code: 'call_not_found' }))).not.toEqual([]);
  expect(check('POST', job, answer(418, { error, code: 'job_not_found' }))).not.toEqual([]);
  headers.set('payment-required', 'e30=');
  expect(check('POST', job, answer(404, { error, code: 'job_not_found' }))).not.toEqual([]);
  const offer = answer(402, { error, code: 'payment_required' });
  expect(check('POST', job, offer)).toHaveLength(2);
});

test('a paid job from its price to its result is as the document says', async () => {
  const { gateway } = await startWithDatabase(leased);
  expect((await gateway.get(`${job}/price`)).status).toBe(200);
  const asked = await gateway.post(job, { body: 'x' });
  expect(asked.status).toBe(402);
  const receipt = `/x402/receipts/${asked.json.quote_digest}`;
  expect((await gateway.get(receipt)).json.state).toBe('quoted');
  const headers = header(await signOffer(offerOf(asked)));
  const paid = await gateway.post(job, { body: 'x', headers });
  expect(paid.status).toBe(202);
  const again = await gateway.post(job, { body: 'x', headers });
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  const mine = bearer(paid.json.receipt_token);
  expect((await gateway.get(receipt, mine)).json).toMatchObject({ state: 'enqueued', result: null });

  const [first] = (await asRunner(gateway, '/runner/leases', { max: 1, lease_secs: 60 })).json.calls;
  const { call_id, lease_id } = first;
  expect((await gateway.get(receipt)).json.state).toBe('delivered');
  const calls = `/runner/calls/${call_id}`;
  expect((await asRunner(gateway, `${calls}/extend`, { lease_id, lease_secs: 60 })).status).toBe(200);
  const result = { content_type: 'text/plain', body_base64: 'aGk=' };
  expect((await asRunner(gateway, `${calls}/complete`, { lease_id, result })).status).toBe(200);
  expect((await gateway.get(`${receipt}?wait_secs=60`, mine)).json).toMatchObject({
    state: 'completed',
    result,
  });
  const waited = await gateway.post(job, { body: 'x', headers: { ...headers, prefer: 'wait=60' } });
  expect([waited.status, waited.json.result]).toEqual([200, result]);
  expect(waited.headers.get('preference-applied')).toBe('wait=60');
  expect((await gateway.get('/x402/stats')).json.counters.completed).toBe(1);
  expect((await gateway.get('/x402/health')).text).toBe('ok');
  await eventually(async () => expect((await gateway.get('/x402/ready')).status).toBe(200));
});

test('while the ledger is unavailable every route answers as the document says', async () => {
  const { database, gateway } = await startWithDatabase({ ...leased, top: 'shutdown_grace_secs = 1' });
  const digest = `0x${'0'.repeat(64)}`;
  await database.away(true);
  const unavailable = [503, 'ledger_unavailable'];
  expect(seen(await gateway.post(job, { body: 'x' }))).toEqual(unavailable);
  expect(seen(await gateway.get(`/x402/receipts/${digest}`))).toEqual(unavailable);
  expect(seen(await gateway.get('/x402/stats'))).toEqual(unavailable);
  expect(seen(await asRunner(gateway, '/runner/leases', { max: 1, lease_secs: 60 }))).toEqual(unavailable);
  const done = { lease_id: anyLease };
  expect(seen(await asRunner(gateway, '/runner/calls/1/complete', done))).toEqual(unavailable);
  const operator = bearer('tollbook_some-token');
  expect(seen(await gateway.get('/operator/dead-letters', operator))).toEqual(unavailable);
  expect(seen(await gateway.post('/operator/dead-letters/1/requeue', { headers: operator }))).toEqual(
    unavailable,
  );
  await eventually(async () => expect((await gateway.get('/x402/ready')).status).toBe(503));
  await gateway.stop();
  await database.away(false);
});
