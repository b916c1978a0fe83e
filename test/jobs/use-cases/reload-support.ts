import { expect } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import type { TestChain } from '../../support/devnet.ts';
import { startTestGateway, testConfig } from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { offerOf } from '../../support/payer.ts';

export const job = '/x402/jobs/1/0';

export const sold = (wei: string) =>
  `[job_prices.1]\n0 = "${wei}"\n[[job_policies]]\nservice_id = 1\njob_index = 0\ninvocation_mode = "public_paid"`;

const [lower, higher] = ['1000000000000000', '2000000000000000'] as const;

/**
 * Reloads two configurations in turn while clients ask for offers and prices: at least so often, and until the clients have seen both. Each
 * answer is of one of them. Returns how many reloads the ledger shows.
 */
export async function reloadUnderLoad(chain: TestChain, times: number, clients: number): Promise<number> {
  const database = await createDatabase();
  // the dear configuration sells at twice the price, for half as long
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
  const asking = Array.from({ length: clients }, async () => {
    while (reloading) {
      const { accepts } = offerOf(await gateway.post(job, { body: 'x' }));
      const { json } = await gateway.get(`${job}/price`);
      seen.add(JSON.stringify(accepts.map(({ amount, maxTimeoutSeconds }) => [amount, maxTimeoutSeconds])));
      seen.add(`price ${json.price_wei} ${json.settlement_options[0].amount}`);
    }
  });
  let reloads = 0;
  while (reloads < times || seen.size < whole.length)
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
  return loaded.length;
}
