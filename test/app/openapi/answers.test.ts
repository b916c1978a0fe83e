import { expect, test } from 'vitest';
import { issueOperatorToken } from '../../../src/accounts/use-cases/operator-tokens.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { type CheckAnswer, documentOf } from '../../support/documented.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import {
  type Answer,
  type TestGateway,
  type TestGatewayOptions,
  startWithDatabase,
} from '../../support/gateway.ts';
import { header, offerOf, quoteAndSign, signOffer } from '../../support/payer.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const runnerToken = 'a-secret-of-the-test-runner-of-length';
const leased = {
  tables: '[[runners]]\nservices = [1]\nmode = "lease"\ntoken = "env:RUNNER_TOKEN"',
  env: { RUNNER_TOKEN: runnerToken },
};
const anyLease = '00000000-0000-4000-8000-000000000000';
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

interface Documented extends TestGateway {
  readonly database: TestDatabase;
  /** Both fail if the answer is not as the document says. */
  readonly get: TestGateway['get'];
  readonly post: TestGateway['post'];
  readonly check: CheckAnswer;
}

/** A gateway whose every answer is held against its own document. */
async function start(options: Partial<TestGatewayOptions> = {}): Promise<Documented> {
  const { database, gateway } = await startWithDatabase({ chain, ...options });
  const check = await documentOf(gateway);
  return {
    ...gateway,
    database,
    check,
    async get(path, headers) {
      const answer = await gateway.get(path, headers);
      expect(check('GET', path, answer)).toEqual([]);
      return answer;
    },
    async post(path, init) {
      const answer = await gateway.post(path, init);
      expect(check('POST', path, answer)).toEqual([]);
      return answer;
    },
  };
}

const seen = ({ status, json }: Answer): unknown[] => [status, json?.code];

function askRunner(gateway: TestGateway, path: string, body: unknown, token = runnerToken): Promise<Answer> {
  const headers = { 'content-type': 'application/json', ...bearer(token) };
  return gateway.post(path, { body: JSON.stringify(body), headers });
}

async function operatorToken(database: TestDatabase, scopes: ('calls:read' | 'calls:write')[]) {
  const lane = openLane({ url: database.url, role: writerRole });
  try {
    return (await issueOperatorToken({ ...database, lane }, { name: 'ops', scopes })).token;
  } finally {
    await lane.close();
  }
}

test('an undocumented key, header, code or status is found', async () => {
  const { check } = await start();
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
  const gateway = await start(leased);
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

  const [first] = (await askRunner(gateway, '/runner/leases', { max: 1, lease_secs: 60 })).json.calls;
  const { call_id, lease_id } = first;
  expect((await gateway.get(receipt)).json.state).toBe('delivered');
  const calls = `/runner/calls/${call_id}`;
  expect((await askRunner(gateway, `${calls}/extend`, { lease_id, lease_secs: 60 })).status).toBe(200);
  const result = { content_type: 'text/plain', body_base64: 'aGk=' };
  expect((await askRunner(gateway, `${calls}/complete`, { lease_id, result })).status).toBe(200);
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

test('a version 1 payment is answered as the document says', async () => {
  const gateway = await start();
  const { accepted, payload } = await signOffer(offerOf(await gateway.post(job, { body: 'x' })));
  const v1 = { x402Version: 1, scheme: accepted.scheme, network: 'base-sepolia', payload };
  const headers = { 'x-payment': Buffer.from(JSON.stringify(v1)).toString('base64') };
  const paid = await gateway.post(job, { body: 'x', headers });
  expect(paid.status).toBe(202);
  expect(paid.headers.get('x-payment-response')).not.toBeNull();
  const again = await gateway.post(job, { body: 'x', headers });
  expect(again.json).not.toHaveProperty('receipt_token');
});

test('dead letters are listed and sent again as the document says', async () => {
  const gateway = await start(leased);
  const payment = await quoteAndSign(gateway, job, 'x');
  expect((await gateway.post(job, { body: 'x', headers: header(payment) })).status).toBe(202);
  const [{ call_id, lease_id }] = (await askRunner(gateway, '/runner/leases', { max: 1, lease_secs: 60 }))
    .json.calls;
  await askRunner(gateway, `/runner/calls/${call_id}/fail`, { lease_id, error: 'broken', retry: false });
  const operator = bearer(await operatorToken(gateway.database, ['calls:read', 'calls:write']));
  expect((await gateway.get('/operator/dead-letters?limit=10', operator)).json.calls).toHaveLength(1);
  const requeue = `/operator/dead-letters/${call_id}/requeue`;
  expect((await gateway.post(requeue, { headers: operator })).status).toBe(200);
  expect(seen(await gateway.post(requeue, { headers: operator }))).toEqual([404, 'call_not_found']);
  const headers = { 'content-type': 'application/json', ...operator };
  const post = (path: string, body: string) => gateway.post(`/operator/${path}`, { body, headers });
  expect((await post('dead-letters/requeue', '{"service_id":7}')).status).toBe(200);
  expect(seen(await post('dead-letters/requeue', '{"service":7}'))).toEqual([400, 'invalid_request']);
  expect((await post(`dead-letters/${call_id}/discard`, '{"why":"gone"}')).status).toBe(200);
  expect(seen(await post('dead-letters/77/discard', '{"why":"gone"}'))).toEqual([404, 'call_not_found']);
  expect((await post('runners/runner-1/pause', '{}')).status).toBe(200);
  expect(seen(await post('runners/other/resume', '{}'))).toEqual([404, 'runner_not_found']);
});

test('every refusal of a paid request is as the document says', async () => {
  const gateway = await start();
  const payment = await quoteAndSign(gateway, job, 'x');
  const pay = (body: string, by: unknown, path = job) => gateway.post(path, { body, headers: header(by) });
  expect(seen(await gateway.post('/x402/jobs/9/9'))).toEqual([404, 'job_not_found']);
  expect(seen(await gateway.post(`/x402/jobs/${'1'.repeat(500)}/9`))).toEqual([404, 'job_not_found']);
  expect(seen(await gateway.post('/x402/jobs/1/2'))).toEqual([403, 'x402_disabled']);
  expect(seen(await gateway.post(job, { headers: { 'content-type': `text/${'x'.repeat(300)}` } }))).toEqual([
    400,
    'invalid_content_type',
  ]);
  expect(seen(await gateway.post(job, { body: 'x'.repeat(1_100_000) }))).toEqual([413, 'body_too_large']);
  expect(seen(await pay('x', 'nonsense'))).toEqual([402, 'payment_invalid']);
  expect(seen(await pay('x', payment))).toEqual([202, undefined]);
  expect(seen(await pay('y', payment))).toEqual([409, 'payment_replay']);
  const second = await signOffer({ ...offerOf(await gateway.post(job)), accepts: [payment.accepted] });
  expect(seen(await pay('x', second))).toEqual([409, 'quote_in_use']);
  const late = await quoteAndSign(gateway, job, 'x');
  await gateway.database.moveClock(10_000);
  expect(seen(await pay('x', late))).toEqual([402, 'quote_expired']);
  expect(seen(await gateway.get('/x402/jobs/9/9/price'))).toEqual([404, 'job_not_found']);
  expect(seen(await gateway.get('/x402/jobs/1/2/price'))).toEqual([403, 'x402_disabled']);
});

test("answers to a payer's own id are as the document says", async () => {
  const gateway = await start({ top: 'payment_identifier = "required"' });
  const pay = async (info?: object) => {
    const payment = await quoteAndSign(gateway, job, 'x');
    const extensions = { 'payment-identifier': { info } };
    return gateway.post(job, { body: 'x', headers: header({ ...payment, ...(info ? { extensions } : {}) }) });
  };
  expect(seen(await pay())).toEqual([400, 'missing_payment_identifier']);
  expect(seen(await pay({ id: 'too-short' }))).toEqual([400, 'invalid_payment_identifier']);
  expect(seen(await pay({ id: 'an-id-of-its-payer' }))).toEqual([202, undefined]);
  expect(seen(await pay({ id: 'an-id-of-its-payer' }))).toEqual([409, 'payment_identifier_conflict']);
});

test('invalid input is refused as the document says, and the price describes the accepted input', async () => {
  const gateway = await start({
    jobs: `[job_prices.1]\n0 = "1"\n[[job_policies]]\nservice_id = 1\njob_index = 0
invocation_mode = "public_paid"\ninput_schema_file = "schema.json"`,
    files: { 'schema.json': '{"type":"object"}' },
  });
  expect((await gateway.get(`${job}/price`)).json.input.content_type).toBe('application/json');
  expect(seen(await gateway.post(job, { body: '1' }))).toEqual([415, 'unsupported_media_type']);
  const json = { 'content-type': 'application/json' };
  expect(seen(await gateway.post(job, { body: '1', headers: json }))).toEqual([422, 'input_invalid']);
  expect(seen(await gateway.post(job, { body: '{}', headers: json }))).toEqual([402, 'payment_required']);
});

test('a client that has to wait is answered as the document says', async () => {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const rpc = await startRpcProxy(chain.rpcUrl);
  const gateway = await start({
    chain: { ...chain, token: chain.token, secondToken: chain.secondToken, rpcUrl: rpc.url },
    facilitatorUrl: proxy.url,
    tables: '[limits]\nmax_outstanding_calls = 1\nrequests_per_minute = 6',
  });
  const payment = await quoteAndSign(gateway, job, 'x');
  const headers = header(payment);
  proxy.faults.verify = 'cut_before';
  expect(seen(await gateway.post(job, { body: 'x', headers }))).toEqual([503, 'facilitator_unavailable']);
  proxy.faults.verify = { answer: { isValid: false, invalidReason: 'invalid_exact_evm_nonce_already_used' } };
  rpc.lie = () => ({ error: { code: -32_000, message: 'not now' } });
  expect(seen(await gateway.post(job, { body: 'x', headers }))).toEqual([503, 'payment_use_unknown']);
  rpc.lie = () => undefined;
  proxy.faults.verify = 'pass';
  proxy.faults.settle = 'cut_before';
  expect(seen(await gateway.post(job, { body: 'x', headers }))).toEqual([503, 'settlement_pending']);
  const again = await gateway.post(job, { body: 'x', headers });
  expect(seen(again)).toEqual([503, 'settlement_pending']);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  const { json } = await gateway.get(`/x402/receipts/${payment.accepted.extra['quoteDigest']}`);
  expect(json).toMatchObject({ state: 'settlement_unknown', paid: null });
  const other = header(await quoteAndSign(gateway, job, 'x'));
  expect(seen(await gateway.post(job, { body: 'x', headers: other }))).toEqual([503, 'enqueue_failed']);
  expect(seen(await gateway.post(job))).toEqual([429, 'rate_limited']);
});

test('while the ledger is unavailable every route answers as the document says', async () => {
  const gateway = await start({ ...leased, top: 'shutdown_grace_secs = 1' });
  const digest = `0x${'0'.repeat(64)}`;
  await gateway.database.away(true);
  const unavailable = [503, 'ledger_unavailable'];
  expect(seen(await gateway.post(job, { body: 'x' }))).toEqual(unavailable);
  expect(seen(await gateway.get(`/x402/receipts/${digest}`))).toEqual(unavailable);
  expect(seen(await gateway.get('/x402/stats'))).toEqual(unavailable);
  expect(seen(await askRunner(gateway, '/runner/leases', { max: 1, lease_secs: 60 }))).toEqual(unavailable);
  const done = { lease_id: anyLease };
  expect(seen(await askRunner(gateway, '/runner/calls/1/complete', done))).toEqual(unavailable);
  const operator = bearer('tollbook_some-token');
  expect(seen(await gateway.get('/operator/dead-letters', operator))).toEqual(unavailable);
  expect(seen(await gateway.post('/operator/dead-letters/1/requeue', { headers: operator }))).toEqual(
    unavailable,
  );
  await eventually(async () => expect((await gateway.get('/x402/ready')).status).toBe(503));
  await gateway.stop();
  await gateway.database.away(false);
});

test('runners, operators and readers of receipts are refused as the document says', async () => {
  const gateway = await start({ ...leased, tables: `${leased.tables}\n[delivery]\nmax_result_bytes = 10` });
  const lease = { max: 1, lease_secs: 60 };
  expect(seen(await askRunner(gateway, '/runner/leases', lease, 'x'))).toEqual([401, 'unauthorized']);
  expect(seen(await askRunner(gateway, '/runner/leases', { ...lease, services: [7] }))).toEqual([
    403,
    'forbidden',
  ]);
  expect(seen(await askRunner(gateway, '/runner/leases', { ...lease, max: 0 }))).toEqual([
    400,
    'invalid_request',
  ]);
  expect(seen(await askRunner(gateway, '/runner/leases', 'x'.repeat(70_000)))).toEqual([
    413,
    'body_too_large',
  ]);
  const headers = { 'content-type': 'application/json', ...bearer(runnerToken) };
  const bad = await gateway.post('/runner/leases', { body: '{', headers });
  expect(seen(bad)).toEqual([400, 'invalid_request']);
  const big = { lease_id: anyLease, result: { body_base64: 'eHh4eHh4eHh4eHh4' } };
  expect(seen(await askRunner(gateway, '/runner/calls/1/complete', big))).toEqual([413, 'result_too_large']);
  for (const [verb, more] of [
    ['extend', { lease_secs: 60 }],
    ['complete', {}],
    ['fail', { error: 'x', retry: true }],
  ] as const) {
    const lost = await askRunner(gateway, `/runner/calls/1/${verb}`, { lease_id: anyLease, ...more });
    expect(seen(lost)).toEqual([409, 'lease_lost']);
  }
  expect(seen(await gateway.get('/operator/dead-letters'))).toEqual([401, 'unauthorized']);
  const reader = bearer(await operatorToken(gateway.database, ['calls:read']));
  expect(seen(await gateway.get('/operator/dead-letters?limit=0', reader))).toEqual([400, 'invalid_request']);
  const requeue = '/operator/dead-letters/1/requeue';
  expect(seen(await gateway.post(requeue, { headers: reader }))).toEqual([403, 'forbidden']);
  const { json } = await gateway.post(job);
  const receipt = `/x402/receipts/${json.quote_digest}`;
  expect(seen(await gateway.get(receipt, bearer('x')))).toEqual([401, 'invalid_receipt_token']);
  expect(seen(await gateway.get('/x402/receipts/none'))).toEqual([404, 'receipt_not_found']);
  expect(seen(await gateway.get(`${receipt}?wait_secs=61`))).toEqual([400, 'invalid_request']);
});
