import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { type FacilitatorProxy, startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { payTo, startTestGateway, type TestGatewayOptions } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { operatorOf } from '../../support/operator.ts';
import { header, payFor, quoteAndSign } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const price = 3_264_000n;
const failuresToOpen = 5;

const nameOf = ({ url }: FacilitatorProxy): string => new URL(url).host;
const count = ({ seen }: FacilitatorProxy, operation: string): number =>
  seen.filter((one) => one === operation).length;

async function start(options: Partial<TestGatewayOptions> = {}) {
  const [first, second] = [
    await startFacilitatorProxy(chain.facilitatorUrl),
    await startFacilitatorProxy(chain.facilitatorUrl),
  ];
  const database = await createDatabase();
  const run = (change: Partial<TestGatewayOptions> = {}) =>
    startTestGateway({ database, chain, facilitators: [first.url, second.url], ...options, ...change });
  const gateway = await run();
  const settlers = async () =>
    (await allEvents(database.db)).flatMap((event) =>
      event.type === 'settlement_started' ? [event.data.facilitator] : [],
    );
  return { first, second, database, gateway, run, settlers };
}

test('a payment goes to the first facilitator, and to the next one only while the first gives no useful answer; the ledger names who settled', async () => {
  const { first, second, database, gateway, settlers } = await start();
  expect((await payFor(gateway, job)).status).toBe(202);
  expect([count(second, 'verify'), count(second, 'settle')]).toEqual([0, 0]);
  first.faults.verify = 'server_error';
  expect((await payFor(gateway, job)).status).toBe(202);
  expect([count(first, 'settle'), count(second, 'settle')]).toEqual([1, 1]);
  first.faults.verify = 'pass';
  expect((await payFor(gateway, job)).status).toBe(202);
  expect(await settlers()).toEqual([nameOf(first), nameOf(second), nameOf(first)]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a payment that the first facilitator calls invalid is refused, and no other one is asked', async () => {
  const { first, second, gateway, settlers } = await start();
  first.faults.verify = {
    answer: { isValid: false, invalidReason: 'invalid_exact_evm_insufficient_balance' },
  };
  expect(await payFor(gateway, job)).toMatchObject({ status: 402, json: { code: 'payment_invalid' } });
  expect([count(second, 'verify'), await settlers()]).toEqual([0, []]);
});

test('while no facilitator gives a useful answer a payment is 503 and nothing is charged', async () => {
  const { first, second, gateway, settlers } = await start();
  const before = await chain.balance(payTo);
  for (const { faults } of [first, second]) faults.verify = 'server_error';
  expect(await payFor(gateway, job)).toMatchObject({
    status: 503,
    json: { code: 'facilitator_unavailable' },
  });
  expect([count(first, 'verify'), count(second, 'verify'), await settlers()]).toEqual([1, 1, []]);
  expect(await chain.balance(payTo)).toBe(before);
});

test('a settlement whose outcome the first facilitator leaves unknown is never given to another one: it is settled again by the first, once', async () => {
  const { first, second, database, gateway } = await start();
  const before = await chain.balance(payTo);
  first.faults.settle = 'cut_before';
  const payment = await quoteAndSign(gateway, job, 'x');
  const sent = { body: 'x', headers: header(payment) };
  expect(await gateway.post(job, sent)).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
  // the resolver asks the first one again, and it fails again
  await eventually(() => expect(count(first, 'settle')).toBeGreaterThan(1));
  first.faults.settle = 'pass';
  await eventually(async () => expect((await gateway.post(job, sent)).status).toBe(202));
  expect(count(second, 'settle')).toBe(0);
  expect((await chain.balance(payTo)) - before).toBe(price);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a payment that was given to a facilitator which is not configured any more is settled by no other one, and found on the chain', async () => {
  const { first, second, database, gateway, run } = await start();
  first.faults.settle = 'cut_before';
  const payment = await quoteAndSign(gateway, job, 'x');
  const sent = { body: 'x', headers: header(payment) };
  expect((await gateway.post(job, sent)).status).toBe(503);
  await gateway.stop();
  const next = await run({ facilitators: [second.url] });
  const pending = await next.post(job, sent);
  expect(pending).toMatchObject({ status: 503, json: { code: 'settlement_pending' } });
  // what the first one had received lands after all
  const { payload, accepted } = payment;
  const request = { x402Version: 2, paymentPayload: { x402Version: 2, payload, accepted } };
  const settled = await fetch(`${chain.facilitatorUrl}/settle`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...request, paymentRequirements: accepted }),
  });
  expect(await settled.json()).toMatchObject({ success: true });
  await eventually(async () => expect((await next.post(job, sent)).status).toBe(202));
  expect(count(second, 'settle')).toBe(0);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('each facilitator has its own circuit breaker: while that of the first is open payments start at the other one, and status and alert name it', async () => {
  const { first, second, database, gateway, settlers } = await start({ top: 'facilitator_verify = false' });
  for (const each of ['supported', 'settle'] as const) first.faults[each] = 'server_error';
  for (let i = 0; i < failuresToOpen; i++) expect((await payFor(gateway, job)).status).toBe(503);
  const status = async () =>
    (await gateway.get('/status', await operatorOf(database, ['status:read']))).json.jobs.facilitator;
  await eventually(async () =>
    expect(await status()).toMatchObject({
      ok: false,
      detail: expect.stringContaining(`circuit breaker of ${nameOf(first)} open: the others settle`),
    }),
  );
  expect((await payFor(gateway, job)).status).toBe(202);
  expect((await settlers()).at(-1)).toBe(nameOf(second));
  await eventually(async () => {
    const { rows } = await database.pool.query('select kind, subject from tollbook.alert');
    expect(rows.filter(({ kind }) => kind === 'facilitator_trouble')).toEqual([
      { kind: 'facilitator_trouble', subject: nameOf(first) },
    ]);
  });
});

test('a facilitator that does not settle a network is not asked for its payments, and a token is offered while any of them settles it', async () => {
  const { first, second, gateway, settlers } = await start();
  const kinds = [{ x402Version: 2, scheme: 'exact', network: 'eip155:1' }];
  first.faults.supported = { answer: { kinds } };
  await eventually(() => expect(count(first, 'supported')).toBeGreaterThan(2));
  expect((await payFor(gateway, job)).status).toBe(202);
  expect([count(first, 'verify'), await settlers()]).toEqual([0, [nameOf(second)]]);
});
