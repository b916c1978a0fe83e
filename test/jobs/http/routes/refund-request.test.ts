import { expect, test } from 'vitest';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { decideRequest } from '../../../../src/finance/use-cases/refunds/decide-request.ts';
import { listRefundsDue } from '../../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { recordRefund } from '../../../../src/finance/use-cases/refunds/record-refund.ts';
import { requireFinal, readMined } from '../../../../src/finance/use-cases/refunds/final-transfers.ts';
import { startRefund } from '../../../../src/finance/use-cases/refunds/send-refund.ts';
import { chainsAt, giveBack, network, openLedger } from '../../../finance/use-cases/refunds/support.ts';
import { useChain } from '../../../support/devnet.ts';
import { askForRefund } from '../../../support/refund-request.ts';
import { eventually } from '../../../support/wait.ts';
import { type Answering, eventTypes, json, signed, startApi, startRouteGateway, weather } from './support.ts';

const chain = useChain();
const city = '/weather/paris?units=c';
const cent = 10_000n;

/** A paid request to a route that is settled first, and what an operator does about it. */
async function pay(answering: Answering) {
  const api = await startApi(answering);
  const gateway = await startRouteGateway({
    chain,
    upstream: api.url,
    routes: weather(api.url, 'flow = "upfront"'),
  });
  const payment = await signed(gateway, city);
  const answer = await gateway.paid.get(city, payment);
  const { rows } = await gateway.database.pool.query<{ digest: Hex; nonce: Hex }>(
    `select tollbook.stream_name(stream) as digest, data::json->'payment'->>'nonce' as nonce
      from tollbook.event where type = 'settlement_started'`,
  );
  const { digest, nonce } = rows[0]!;
  const ledger = openLedger(gateway.database);
  const due = async () =>
    (await listRefundsDue(gateway.database.pool, 0, 10)).rows.map((row) => [row.why, row.requested?.reason]);
  return { api, gateway, payment, answer, digest, nonce, ledger, due };
}

test('an answer of 404 that was charged is refunded once its payer has asked and an operator has agreed', async () => {
  const { gateway, answer, digest, nonce, ledger, due } = await pay(
    (_asked, response) => void response.writeHead(404).end('no such city'),
  );
  expect(answer.status).toBe(404);
  const chains = chainsAt(chain.rpcUrl);
  const of = { quoteDigest: digest, paymentNonce: nonce, operator: 'ada' };
  expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'refused', code: 'not_due' });
  const reason = 'Paris exists';
  expect((await askForRefund(gateway, digest, reason)).json).toMatchObject({
    refund_request: { state: 'open' },
  });
  expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'refused', code: 'not_due' });
  expect(await due()).toEqual([]);
  const decision = { kind: 'grant', quoteDigest: digest, operator: 'ada' } as const;
  expect(await decideRequest(ledger, decision)).toEqual({ kind: 'decided' });
  await eventually(async () => expect(await due()).toEqual([['granted', reason]]));
  await eventually(async () =>
    expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'started' }),
  );
  const transaction = await giveBack(chain, { amount: cent });
  await eventually(async () => {
    const mined = await readMined(chains, network, transaction);
    expect(mined.kind === 'mined' && (await requireFinal(chains, network, mined))).toBeUndefined();
  });
  expect(await recordRefund(ledger, { ...of, transaction, isGoodwill: false }, chains)).toMatchObject({
    kind: 'recorded',
  });
  await eventually(async () => expect(await due()).toEqual([]));
  expect((await gateway.get(`/x402/receipts/${digest}`)).json).toMatchObject({
    state: 'refunded',
    refund_request: { state: 'refunded' },
  });
  expect((await eventTypes(gateway)).filter((type) => type.startsWith('refund'))).toEqual([
    'refund_requested',
    'refund_request_granted',
    'refund_started',
    'refunded',
  ]);
});

test('a payer who asks after a failure of the upstream may have the answer until an operator decides, and nothing is refunded then', async () => {
  const { api, gateway, payment, answer, digest, ledger, due } = await pay(
    (_asked, response) => void response.destroy(),
  );
  expect(answer.status).toBe(502);
  expect((await askForRefund(gateway, digest, 'no answer')).json).toMatchObject({
    refund_request: { state: 'open' },
  });
  api.answering = json;
  expect((await gateway.paid.get(city, payment)).status).toBe(200);
  expect(await decideRequest(ledger, { kind: 'grant', quoteDigest: digest, operator: 'ada' })).toEqual({
    kind: 'refused',
    code: 'not_requested',
  });
  expect((await gateway.get(`/x402/receipts/${digest}`)).json).toMatchObject({
    state: 'completed',
    refund_request: { state: 'delivered' },
  });
  expect(await due()).toEqual([]);
  expect(await eventTypes(gateway)).not.toContain('refund_request_granted');
});

test('once the refund of a failed request is granted, its payment gets no answer', async () => {
  const { api, gateway, payment, digest, ledger, due } = await pay(
    (_asked, response) => void response.destroy(),
  );
  await askForRefund(gateway, digest, 'no answer');
  expect(await decideRequest(ledger, { kind: 'grant', quoteDigest: digest, operator: 'ada' })).toEqual({
    kind: 'decided',
  });
  api.answering = json;
  expect(await gateway.paid.get(city, payment)).toMatchObject({ status: 410, json: { code: 'refund_due' } });
  expect(api.asked).toHaveLength(1);
  await eventually(async () => expect(await due()).toEqual([['dead_lettered', 'no answer']]));
  await eventTypes(gateway);
});
