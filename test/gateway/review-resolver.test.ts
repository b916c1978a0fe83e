import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { startFacilitatorProxy } from '../support/facilitator-proxy.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { allEvents } from '../support/invariants.ts';
import { cancelPayment, landPayment } from '../support/onchain.ts';
import { header, offerOf, type Payment, quoteAndSign, signOffer } from '../support/payer.ts';
import { startTollbook } from '../support/program.ts';
import { startTestRunner } from '../support/runner.ts';
import { eventually } from '../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const nowhere = `0x${'a'.repeat(64)}`;
const successOf = (transaction: string) => ({ success: true, transaction, network: 'eip155:84532' });

type Lie = (call: { method: string; params: any[] }) => object | undefined;
async function rpcProxy() {
  const state: { lie: Lie; seen: string[] } = { lie: () => undefined, seen: [] };
  const server = http.createServer((request, response) => {
    void request.toArray().then(async (chunks) => {
      const body = Buffer.concat(chunks).toString('utf8');
      const call = JSON.parse(body);
      state.seen.push(call.method);
      const lie = state.lie(call);
      const text = lie
        ? JSON.stringify({ jsonrpc: '2.0', id: call.id, ...lie })
        : await (await fetch(chain.rpcUrl, { method: 'POST', body, headers: { 'content-type': 'application/json' } })).text();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(text);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function setUp({ top = '', isServed = true, clock = 0, tables = '' } = {}) {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  onTestFinished(() => proxy.close());
  const rpc = await rpcProxy();
  const runner = await startTestRunner(({ body }: any) => ({ status: 200, body: `did ${body}` }));
  const database = await createDatabase();
  if (clock) await database.moveClock(clock);
  const gateway = await startTestGateway({
    database,
    chain: { ...chain, rpcUrl: rpc.url, facilitatorUrl: chain.facilitatorUrl, token: chain.token, secondToken: chain.secondToken },
    facilitatorUrl: proxy.url,
    runnerUrl: isServed ? runner.url : undefined,
    top: `facilitator_verify_timeout_ms = 300\nfacilitator_settle_timeout_ms = 1000\n${top}`,
    tables,
  });
  const typesOf = async (digest: string) =>
    (await allEvents(database.db)).filter(({ stream }) => stream === digest).map(({ type }) => type);
  return { proxy, rpc, runner, database, gateway, typesOf };
}
const digestOf = (payment: Payment): string => payment.accepted.extra['quoteDigest'] ?? '';
const pay = (gateway: TestGateway, payment: Payment, body = 'x') => gateway.post(job, { body, headers: header(payment) });
const receiptOf = async (gateway: TestGateway, payment: Payment, token?: string) =>
  (await gateway.get(`/x402/receipts/${digestOf(payment)}`, token ? { authorization: `Bearer ${token}` } : {})).json;

test('T1 one lagging answer about a final block: the payment is open for ever, nobody looks', async () => {
  const { rpc, database, gateway, typesOf } = await setUp();
  let lag = true;
  rpc.state.lie = ({ method, params }) =>
    lag && method === 'eth_getBlockByNumber' && String(params[0]).startsWith('0x') ? { result: null } : undefined;
  const payment = await quoteAndSign(gateway, job, 'x');
  expect((await pay(gateway, payment)).status).toBe(202);
  await eventually(async () => expect(await typesOf(digestOf(payment))).toContain('settlement_reorged'));
  lag = false;
  await eventually(async () =>
    expect((await database.pool.query('select * from tollbook.follow_up where topic = $1', ['confirm'])).rows).toEqual([]),
  );
  await sleep(8_000);
  console.log(await typesOf(digestOf(payment)), await receiptOf(gateway, payment));
  console.log('again', (await pay(gateway, payment)).status);
  console.log((await database.pool.query('select status from tollbook.call')).rows);
  console.log(await startTollbook(['settlements'], { DATABASE_URL: database.url }).ended);
}, 60_000);

test('T2 a payment that is open while a runner has the call is not listed, and no operator can decide it', async () => {
  const { proxy, database, gateway, typesOf } = await setUp({ top: 'confirm = "after"', tables: '[alerts]\nunresolved_after_secs = 1' });
  const payment = await quoteAndSign(gateway, job, 'x', { signed: { validBefore: String(Math.floor(Date.now() / 1000) + 250) } });
  proxy.faults.settle = { answer: successOf(nowhere) };
  expect((await pay(gateway, payment)).status).toBe(202);
  await eventually(async () => expect(await typesOf(digestOf(payment))).toContain('settlement_overdue'), );
  console.log(await typesOf(digestOf(payment)), await receiptOf(gateway, payment));
  console.log((await startTollbook(['settlements'], { DATABASE_URL: database.url }).ended).stdout);
  const words = ['--evidence', 'seen', '--by', 'ada'];
  console.log(await startTollbook(['settlements', 'resolve', digestOf(payment), '--unpaid', ...words], { DATABASE_URL: database.url }).ended);
}, 60_000);

test('T3 settle-again: how often', async () => {
  const { proxy, gateway } = await setUp();
  proxy.faults.settle = 'server_error';
  const payments = await Promise.all(Array.from({ length: 10 }, () => quoteAndSign(gateway, job, 'x')));
  await Promise.all(payments.map((payment) => pay(gateway, payment)));
  await sleep(20_000);
  const before = proxy.seen.filter((o) => o === 'settle').length;
  await sleep(10_000);
  const after = proxy.seen.filter((o) => o === 'settle').length;
  console.log('settles of 10 payments, 20 to 30 s after their start:', after - before);
}, 60_000);

test('T4 database clock 60 s behind: a settlement that is mined 4 s later is disproved', async () => {
  const { proxy, gateway, typesOf } = await setUp({ top: 'confirm_timeout_ms = 200', isServed: false, clock: -60 });
  const payment = await quoteAndSign(gateway, job, 'x', { signed: { validAfter: '0', validBefore: String(Math.floor(Date.now() / 1000) + 200) } });
  proxy.faults.settle = { answer: successOf(nowhere) };
  const paid = await pay(gateway, payment);
  console.log(paid.status, paid.json);
  await sleep(4_000);
  proxy.faults.settle = 'server_error';
  console.log('before landing', await typesOf(digestOf(payment)));
  await landPayment(chain.rpcUrl, payment);
  await sleep(6_000);
  console.log('after', await typesOf(digestOf(payment)));
}, 60_000);

test('T5 a late first payment takes the receipt of the one that took its quote', async () => {
  const { proxy, gateway } = await setUp();
  const asked = await gateway.post(job, { body: 'x' });
  const first = await signOffer(offerOf(asked));
  const second = await signOffer(offerOf(asked));
  proxy.faults.settle = { answer: { success: false, errorReason: 'invalid_exact_evm_insufficient_balance', transaction: '', network: 'eip155:84532' } };
  expect((await pay(gateway, first, 'FIRST')).status).toBe(402);
  proxy.faults.settle = 'pass';
  const ok = await pay(gateway, second, 'SECOND');
  expect(ok.status).toBe(202);
  const token = ok.json.receipt_token;
  await eventually(async () => expect((await receiptOf(gateway, second)).state).toBe('completed'));
  const before = await receiptOf(gateway, second, token);
  await landPayment(chain.rpcUrl, first);
  await eventually(async () => expect((await receiptOf(gateway, second)).events.filter(({ type }: any) => type === 'completed')).toHaveLength(2));
  const after = await receiptOf(gateway, second, token);
  for (const r of [before, after]) console.log(r.call_id, r.payment.transaction, Buffer.from(r.result.body_base64, 'base64').toString());
}, 60_000);

test('T6 landed before it came, and the node refuses eth_getLogs: 402', async () => {
  const { rpc, gateway } = await setUp();
  rpc.state.lie = ({ method }) => (method === 'eth_getLogs' ? { error: { code: -32005, message: 'limit' } } : undefined);
  const payment = await quoteAndSign(gateway, job, 'x');
  await landPayment(chain.rpcUrl, payment);
  const paid = await pay(gateway, payment);
  console.log(paid.status, paid.json);
}, 60_000);

test('T7 one version 1 request with a cancelled authorization: RPC questions', async () => {
  const { rpc, gateway } = await setUp();
  const asked = await gateway.post(job, { body: 'x' });
  const payment = await signOffer(offerOf(asked), { signed: { validAfter: '0' } });
  await cancelPayment(chain.rpcUrl, payment);
  await fetch(chain.rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'anvil_mine', params: ['0x186a0', '0x0'] }) });
  const v1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: payment.payload };
  rpc.state.seen.length = 0;
  const started = Date.now();
  const paid = await gateway.post(job, { body: 'x', headers: { 'x-payment': Buffer.from(JSON.stringify(v1)).toString('base64') } });
  console.log(paid.status, paid.json.reason, Date.now() - started, 'ms', rpc.state.seen.filter((m) => m === 'eth_getLogs').length, 'eth_getLogs of', rpc.state.seen.length);
}, 120_000);
