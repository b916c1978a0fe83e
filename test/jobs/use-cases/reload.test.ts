import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { startTestGateway, testConfig, startWithDatabase } from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, quoteAndSign, signOffer } from '../../support/payer.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';

const sold = (wei: string) =>
  `[job_prices.1]\n0 = "${wei}"\n[[job_policies]]\nservice_id = 1\njob_index = 0\ninvocation_mode = "public_paid"`;

const [lower, higher] = ['1000000000000000', '2000000000000000'] as const;

test('reloads under load: no request sees a mixed configuration', async () => {
  const database = await createDatabase();
  // two configurations in turn while clients ask for offers and prices: each answer is of one of them. The dear one sells at twice the price, for half as long
  const cheap = { database, chain, jobs: sold(lower) };
  const dear = { ...cheap, jobs: sold(higher), top: 'max_timeout_secs = 150' };
  const gateway = await startTestGateway(cheap);
  const configs = [await testConfig(dear), await testConfig(cheap)] as const;
  const whole = [
    '[["3264000",300],["3264000",300]]',
    '[["6528000",150],["6528000",150]]',
    `price ${lower} 3264000`,
    `price ${higher} 6528000`,
  ];
  let reloading = true;
  const seen = new Set<string>();
  const asking = Array.from({ length: 4 }, async () => {
    while (reloading) {
      const { accepts } = offerOf(await gateway.post(job, { body: 'x' }));
      const { json } = await gateway.get(`${job}/price`);
      seen.add(JSON.stringify(accepts.map(({ amount, maxTimeoutSeconds }) => [amount, maxTimeoutSeconds])));
      seen.add(`price ${json.price_wei} ${json.settlement_options[0].amount}`);
    }
  });
  let reloads = 0;
  while (reloads < 50 || seen.size < whole.length)
    for (const config of configs) {
      await gateway.reload(config);
      reloads += 1;
    }
  reloading = false;
  await Promise.all(asking);
  expect(seen).toEqual(new Set(whole));
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const loaded = events.filter(({ type }) => type === 'operator_config_loaded');
  expect(loaded).toHaveLength(reloads);
  expect(new Set(loaded.map(({ data }) => JSON.stringify(data))).size).toBe(2);
  const [cheaper, dearer] = [lower, higher].map((price_wei) => ({ mode: 'public_paid', price_wei }));
  expect(loaded.at(-1)?.data).toMatchObject({
    changes: [{ service_id: 1, job_index: 0, was: dearer, now: cheaper }],
  });
});

const onlyEuros = (text: string): string => text.replace(/\[\[accepted_tokens\]\][^[]+/, '');

test('a quote that was issued keeps its price and its token over a reload that removes both', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  await gateway.reload(
    await testConfig({ database, chain, change: onlyEuros, jobs: sold('5000000000000000') }),
  );
  const answer = await gateway.post(job, { body: 'x', headers: header(await signOffer(offer)) });
  expect(answer).toMatchObject({ status: 202, json: { payment: { amount: '3264000', asset: chain.token } } });
});

test('a job that is disabled by a reload is refused immediately, and its started payments are finished', async () => {
  const database = await createDatabase();
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const options = { database, chain, facilitatorUrl: proxy.url };
  const gateway = await startTestGateway(options);
  const [started, late] = [await quoteAndSign(gateway, job, 'x'), await quoteAndSign(gateway, job, 'x')];
  // while it is settled
  proxy.faults.settle = {
    change: async (answer) => {
      await gateway.reload(await testConfig({ ...options, jobs: '[job_prices.1]\n0 = "1"' }));
      return answer;
    },
  };
  expect((await gateway.post(job, { body: 'x', headers: header(started) })).status).toBe(202);
  const answer = await gateway.post(job, { body: 'x', headers: header(late) });
  expect(answer).toMatchObject({ status: 403, json: { code: 'x402_disabled' } });
});

test('a refused configuration is recorded, and changes nothing', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  const before = (await gateway.get(`${job}/price`)).json;
  await gateway.refuseReload(3);
  expect((await allEvents(database.db)).at(-1)).toMatchObject({
    type: 'operator_config_refused',
    data: { mistakes: 3 },
  });
  expect((await gateway.get(`${job}/price`)).json).toEqual(before);
});
