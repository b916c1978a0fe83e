import { expect, test } from 'vitest';
import { backUp } from '../../support/backup.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { payTo, startTestGateway } from '../../support/gateway.ts';
import { operatorOf } from '../../support/operator.ts';
import { header, payFor, quoteAndSign } from '../../support/payer.ts';
import { logLines } from '../../support/log-lines.ts';
import { startTestRunner } from '../../support/runner.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const wentBack = expect.stringMatching(
  /the database went back in time: it had acknowledged the events/,
) as string;
const critical = {
  status: 200,
  json: { status: 'critical', ledger: { status: 'critical' } },
};
const halted = { status: 503, json: { code: 'ledger_inconsistent' } };

test('gateways whose database was replaced by an older copy stop selling, say why, alert, and charge no payment', async () => {
  const database = await createDatabase();
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const receiver = await startTestRunner(() => ({ status: 204 }));
  const options = {
    database,
    chain,
    facilitatorUrl: proxy.url,
    tables: `[alerts]\nwebhook = "${receiver.url}"`,
  };
  const { logger, lines } = logLines();
  const [one, other] = [await startTestGateway({ ...options, logger }), await startTestGateway(options)];
  const kept = await payFor(one, job);
  const unpaid = await quoteAndSign(one, job, 'x');
  const operator = await operatorOf(database, ['status:read']);
  const restore = await backUp(database);
  const lost = await quoteAndSign(one, job, 'x');
  expect((await one.post(job, { body: 'x', headers: header(lost) })).status).toBe(202);
  const before = await chain.balance(payTo);

  // a payment that is being settled while the database is replaced
  const { promise: settles, resolve: answerSettle } = Promise.withResolvers<void>();
  proxy.faults.settle = { change: async (answer) => settles.then(() => answer) };
  const settling = await quoteAndSign(one, job, 'y');
  const paying = one.post(job, { body: 'y', headers: header(settling) });
  await eventually(() => expect(proxy.seen.filter((operation) => operation === 'settle')).toHaveLength(3));
  await restore();
  expect(await one.post(job, { body: 'x' })).toMatchObject(halted);
  const { db } = database;
  const haltOnRecord = () => db.selectFrom('tollbook.lane').select('halt_reason').executeTakeFirst();
  await eventually(async () => expect(await haltOnRecord()).toEqual({ halt_reason: wentBack }));
  answerSettle();
  expect(await paying).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });

  proxy.seen.length = 0;
  for (const gateway of [one, other]) {
    expect(await gateway.post(job, { body: 'x' })).toMatchObject(halted);
    expect(await gateway.get('/status')).toMatchObject(critical);
    expect((await gateway.get('/status', operator)).json.ledger.detail).toEqual(wentBack);
    for (const payment of [lost, unpaid])
      expect(await gateway.post(job, { body: 'x', headers: header(payment) })).toMatchObject(halted);
    expect(await gateway.post(`${job}/auth-dry-run`, { body: 'x' })).toMatchObject(halted);
    // receipts must still be served
    await eventually(async () => expect((await gateway.get('/x402/ready')).status).toBe(200));
    expect(await gateway.get(`/x402/receipts/${kept.json.quote_digest}`)).toMatchObject({
      status: 200,
      json: { paid: true },
    });
  }
  expect(proxy.seen.filter((operation) => operation !== 'supported')).toEqual([]);
  // the payments that were settled before, and no other
  expect((await chain.balance(payTo)) - before).toBe(BigInt(settling.payload.authorization.value));
  await eventually(() => expect(new Set(receiver.deliveries.map(({ id }) => id)).size).toBe(1));
  expect(JSON.parse(receiver.deliveries[0]?.body.toString() ?? '')).toMatchObject({
    type: 'ledger_inconsistent',
    text: wentBack,
  });
  expect(lines.filter(({ alert }) => alert === 'ledger_inconsistent')).toHaveLength(1);
  await expect(startTestGateway(options)).rejects.toThrow(/nothing is sold: the database went back in time/);
});
