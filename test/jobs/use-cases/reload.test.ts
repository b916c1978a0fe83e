import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { startTestGateway, testConfig, startWithDatabase } from '../../support/gateway.ts';
import { allEvents } from '../../support/invariants.ts';
import { header, offerOf, quoteAndSign, signOffer } from '../../support/payer.ts';
import { job, reloadUnderLoad, sold } from './reload-support.ts';

const chain = useChain();

test('reloads under load: no request sees a mixed configuration', async () => {
  expect(await reloadUnderLoad(chain, 50, 4)).toBeGreaterThanOrEqual(50);
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

test('a reload returns the TOML names of changed keys that require a restart', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  const other = await testConfig({
    database,
    chain,
    top: 'shutdown_grace_secs = 7\npay_to_exclusive = false\nquote_ttl_secs = 60\npayment_identifier = "required"',
    facilitatorUrl: 'http://127.0.0.1:9',
  });
  expect(await gateway.reload(other)).toEqual(['shutdown_grace_secs', 'facilitator_url', 'pay_to_exclusive']);
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
