import { expect, test } from 'vitest';
import { expireCredit } from '../../../../src/accounts/use-cases/credit/credit.ts';
import { leaseTopUps } from '../../../../src/accounts/store/top-ups.ts';
import { decideRequest } from '../../../../src/finance/use-cases/refunds/decide-request.ts';
import { topUp } from '../../../../src/jobs/use-cases/top-ups/top-up.ts';
import { openLedger } from '../../../finance/use-cases/refunds/support.ts';
import { expectBooks, laneOn } from '../../../support/credit.ts';
import { useChain } from '../../../support/devnet.ts';
import { logLines } from '../../../support/log-lines.ts';
import { header, quoteAndSign } from '../../../support/payer.ts';
import { askForRefund } from '../../../support/refund-request.ts';
import { type Lie, startRpcProxy } from '../../../support/rpc-proxy.ts';
import {
  buyCredit,
  eventsOf,
  fundedWallet,
  signedIn,
  startTopUpGateway,
  type TopUpGateway,
  topUpJob,
} from '../../../support/top-up.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();
const nowhere = `0x${'a'.repeat(64)}`;

/** A node that has no answer yet about final blocks. */
const isSilent: Lie = ({ method, params }) =>
  method === 'eth_getBlockByNumber' && String(params[0]).startsWith('0x') ? { result: null } : undefined;

/** Another history became final, long after: in it no payment was ever made. */
const isOtherHistory: Lie = ({ method, params }) => {
  switch (method) {
    case 'eth_getBlockByNumber': {
      const number = params[0] === 'finalized' ? '0xffffff' : params[0];
      return { result: { number, hash: nowhere, timestamp: '0xffffffff' } };
    }
    case 'eth_getTransactionReceipt':
    case 'eth_getTransactionByHash':
      return { result: null };
    case 'eth_call': {
      // what a contract says of itself has no arguments, and is the same in every history
      const isFact = (params[0] as { data?: string } | undefined)?.data?.length === 10;
      return isFact ? undefined : { result: `0x${'0'.repeat(64)}` };
    }
    default:
      return undefined;
  }
};

async function behindNode(isServed = true) {
  const rpc = await startRpcProxy(chain.rpcUrl);
  rpc.lie = isSilent;
  const ofChain = {
    rpcUrl: rpc.url,
    facilitatorUrl: chain.facilitatorUrl,
    token: chain.token,
    secondToken: chain.secondToken,
  };
  return { rpc, gateway: await startTopUpGateway(ofChain, { isServed }) };
}

async function failsLate({ database }: TopUpGateway): Promise<void> {
  await eventually(async () => {
    const [reorged] = await eventsOf(database, 'settlement_reorged');
    expect(reorged?.data).toMatchObject({ call: 'kept' });
    const [failed] = await eventsOf(database, 'settlement_failed');
    expect(failed?.data).toMatchObject({ reason: 'authorization_expired' });
  });
}

test.each([
  ['all of it where it is still there', 0n, ['10000000', '0']],
  ['what is left of it where some was spent', 4_000_000n, ['6000000', '4000000']],
  ['nothing where all of it was spent', 10_000_000n, ['0', '10000000']],
])('credit whose payment did not last goes back once: %s', async (_, spent, takenAndMissing) => {
  const { rpc, gateway } = await behindNode();
  const wallet = await fundedWallet(chain);
  const { callId, digest } = await buyCredit(gateway.url, wallet.key);
  const { browser } = await signedIn(gateway, wallet);
  const [given] = await eventsOf(gateway.database, 'credit_topped_up');
  const accountId = given?.data.account_id ?? 0;
  if (spent > 0n) await expireCredit({ lane: laneOn(gateway.database) }, accountId, spent);
  rpc.lie = isOtherHistory;
  await failsLate(gateway);
  await eventually(async () => {
    const [event, ...more] = await eventsOf(gateway.database, 'credit_reversed');
    expect([event?.data.amount_micros, event?.data.missing_micros]).toEqual(takenAndMissing);
    expect(event?.data).toMatchObject({ account_id: accountId, call_id: callId, quote_digest: digest });
    expect(more).toEqual([]);
  });
  expect((await browser.get('/v1/credits')).json.balance).toBe('0');
  await eventually(async () => {
    const { rows } = await gateway.database.pool.query(
      "select from tollbook.follow_up where topic = 'reverse_top_up'",
    );
    expect(rows).toEqual([]);
  });
  await expectBooks(gateway.database);
});

test('a payment that fails while its call is leased gives no credit, and its call becomes a dead letter', async () => {
  const { rpc, gateway } = await behindNode(false);
  const { account } = await fundedWallet(chain);
  const payment = await quoteAndSign(gateway, topUpJob, 'x', { account });
  const paid = await gateway.post(topUpJob, { body: 'x', headers: header(payment) });
  expect(paid.status).toBe(202);
  const asked = { max: 1, leaseSecs: 1, isProven: true, maxAgeSecs: 604_800 };
  const jobs = [{ serviceId: 9, jobIndex: 0 }];
  expect(await leaseTopUps(gateway.database.pool, jobs, asked)).toHaveLength(1);
  rpc.lie = isOtherHistory;
  await failsLate(gateway);
  const server = await startTopUpGateway(gateway.options.chain, { database: gateway.database });
  await eventually(async () => {
    const [dead] = await eventsOf(gateway.database, 'dead_lettered');
    expect(dead?.data).toMatchObject({ call_id: paid.json.call_id, reason: 'settlement_failed' });
  });
  expect(await eventsOf(gateway.database, 'credit_topped_up')).toEqual([]);
  expect((await server.get(`/x402/receipts/${paid.json.quote_digest}`)).json.paid).toBe(false);
  await expectBooks(gateway.database);
});

test('a top-up whose payment is not proven within the age of a call gives no credit, and its refund is due', async () => {
  const { gateway } = await behindNode(false);
  const { database } = gateway;
  const { account } = await fundedWallet(chain);
  const payment = await quoteAndSign(gateway, topUpJob, 'x', { account });
  const paid = await gateway.post(topUpJob, { body: 'x', headers: header(payment) });
  expect(paid.status).toBe(202);
  await database.moveClock(8 * 86_400);
  await startTopUpGateway(gateway.options.chain, { database });
  await eventually(async () => {
    const [dead] = await eventsOf(database, 'dead_lettered');
    expect(dead?.data).toMatchObject({ call_id: paid.json.call_id, reason: 'call_too_old' });
  });
  expect(await eventsOf(database, 'credit_topped_up')).toEqual([]);
  await expectBooks(database);
});

test('a refund is not granted once the credit of its payment was given, although the end of its call is not on record', async () => {
  const { gateway } = await behindNode(false);
  const { database } = gateway;
  const { account } = await fundedWallet(chain);
  const payment = await quoteAndSign(gateway, topUpJob, 'x', { account });
  const paid = await gateway.post(topUpJob, { body: 'x', headers: header(payment) });
  const { call_id: callId, quote_digest: digest } = paid.json;
  const asked = { max: 1, leaseSecs: 60, isProven: false, maxAgeSecs: 604_800 };
  const [lease] = await leaseTopUps(database.pool, [{ serviceId: 9, jobIndex: 0 }], asked);
  const ledger = openLedger(database);
  const reason = 'credit_unavailable';
  await ledger.lane.append({
    stream: digest,
    events: [{ type: 'delivery_failed', data: { call_id: callId, attempt: 1, reason } }],
    call: { op: 'retry', callId, leaseId: lease!.leaseId, delayMs: 3_600_000, reason },
  });
  expect((await askForRefund(gateway, digest, 'no credit', { account })).json).toMatchObject({
    refund_request: { state: 'open' },
  });
  const [started] = await eventsOf(database, 'settlement_started');
  const { network, asset, symbol, decimals, amount: atoms, payer } = started!.data.payment;
  const bought = { network, asset, symbol, decimals, atoms, payer, currency: 'USD' };
  expect(
    await topUp(
      { ...ledger, log: logLines().logger },
      { call_id: callId, quote_digest: digest, ...bought },
      10_000_000n,
    ),
  ).toMatchObject({ kind: 'credited' });
  expect(await decideRequest(ledger, { kind: 'grant', quoteDigest: digest, operator: 'ada' })).toEqual({
    kind: 'refused',
    code: 'with_runner',
  });
  expect(await eventsOf(database, 'dead_lettered')).toEqual([]);
});
