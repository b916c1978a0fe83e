import { expect, test } from 'vitest';
import { useChain } from '../../support/devnet.ts';
import { failsBeforeBroadcast, startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import {
  payTo,
  startTestGateway,
  type TestGatewayOptions,
  startWithDatabase,
} from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, quoteAndSign, signOffer } from '../../support/payer.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const price = 3_264_000n;

async function behindProxy(options: Partial<TestGatewayOptions> = {}) {
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const { database, gateway } = await startWithDatabase({ chain, facilitatorUrl: proxy.url, ...options });
  return { proxy, database, gateway };
}

test('a copy of a request whose verification finds the nonce used is answered from the payment, not with a 402', async () => {
  const { proxy, database, gateway } = await behindProxy();
  const payment = await quoteAndSign(gateway, job, 'x');
  const before = await chain.balance(payTo);
  const { promise: firstSettled, resolve: settled } = Promise.withResolvers<void>();
  let verifies = 0;
  proxy.faults.verify = {
    change: async (answer) => {
      verifies++;
      if (verifies === 1) return answer;
      await firstSettled;
      return { isValid: false, invalidReason: 'invalid_exact_evm_nonce_already_used' };
    },
  };
  proxy.faults.settle = {
    change: (answer) => {
      settled();
      return answer;
    },
  };
  const send = () => gateway.post(job, { body: 'x', headers: header(payment) });
  const answers = await Promise.all([send(), send()]);
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
  expect((await chain.balance(payTo)) - before).toBe(price);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'payment_rejected')).toEqual([]);
});

test('two copies of a request that fill the outbox are both answered with their call', async () => {
  const { proxy, gateway } = await behindProxy({
    tables: '[limits]\nmax_outstanding_calls = 1\nrequests_per_minute = 0',
  });
  const payment = await quoteAndSign(gateway, job, 'x');
  let verifies = 0;
  const { promise: both, resolve: bothVerified } = Promise.withResolvers<void>();
  proxy.faults.verify = {
    change: async (answer) => {
      verifies++;
      if (verifies === 2) bothVerified();
      await both;
      return answer;
    },
  };
  const send = () => gateway.post(job, { body: 'x', headers: header(payment) });
  const answers = await Promise.all([send(), send()]);
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ accepted: 1, enqueue_failed: 0 });
});

test('copies of a payment that arrive while it is being settled never get a 402 or a 409', async () => {
  const { gateway } = await behindProxy();
  for (let round = 0; round < 10; round++) {
    const payment = await quoteAndSign(gateway, job, 'x');
    const copies: Promise<{ readonly status: number }>[] = [];
    let done = false;
    const first = gateway.post(job, { body: 'x', headers: header(payment) }).finally(() => (done = true));
    while (!done) {
      copies.push(gateway.post(job, { body: 'x', headers: header(payment) }));
      await new Promise((resolve) => setImmediate(resolve));
      if (copies.length >= 30) await first;
    }
    const statuses = [(await first).status, ...(await Promise.all(copies)).map(({ status }) => status)];
    expect(new Set(statuses)).toEqual(new Set([202]));
  }
});

test('the quote of a failed payment has ended at every gateway', async () => {
  const keyed = {
    top: 'quote_key = "env:QUOTE_KEY"\npublic_url = "http://jobs.example"',
    env: { QUOTE_KEY: 'the-key-of-quotes-of-the-test-gateway' },
  };
  const { proxy, database, gateway } = await behindProxy(keyed);
  const other = await startTestGateway({ database, chain, ...keyed });
  const before = await chain.balance(payTo);
  for (const second of [gateway, other]) {
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    proxy.faults.settle = failsBeforeBroadcast;
    const failed = await gateway.post(job, { body: 'x', headers: header(await signOffer(offer)) });
    expect(failed).toMatchObject({ status: 402, json: { code: 'payment_invalid' } });
    delete proxy.faults.settle;
    const ended = await second.post(job, { body: 'x', headers: header(await signOffer(offer)) });
    expect(ended).toMatchObject({ status: 402, json: { code: 'quote_ended' } });
    const headers = header(await signOffer(offerOf(ended)));
    expect((await second.post(job, { body: 'x', headers })).status).toBe(202);
  }
  expect((await chain.balance(payTo)) - before).toBe(2n * price);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});
