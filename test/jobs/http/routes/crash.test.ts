import { expect, test } from 'vitest';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { startFacilitatorProxy } from '../../../support/facilitator-proxy.ts';
import { payTo } from '../../../support/gateway.ts';
import { header, offerOf, signOffer } from '../../../support/payer.ts';
import { eventually } from '../../../support/wait.ts';
import { eventTypes, json, spawnRouteGateway, startApi, startRouteGateway, weather } from './support.ts';

const chain = useChain();
const city = '/weather/paris';
const cent = 10_000n;

test.each([
  ['whose upstream answers first', 'timeout_ms = 2_000', 'upstream_repeated'],
  ['that is settled first', 'flow = "upfront"', 'delivered'],
])(
  'a request %s and whose gateway was killed while its upstream worked is answered by another gateway, and charged once',
  async (_what, flow, type) => {
    const api = await startApi(() => {});
    const database = await createDatabase();
    const { program, paid: killed } = await spawnRouteGateway(chain, database, weather(api.url, flow), {
      routes: { leaseSecs: 3 },
    });
    const before = await chain.balance(payTo);
    const payment = header(await signOffer(offerOf(await killed.get(city))));
    const cut = killed.get(city, payment).then(
      () => 'answered',
      () => 'cut',
    );
    await eventually(() => expect(api.asked).toHaveLength(1));
    program.kill('SIGKILL');
    expect(await cut).toBe('cut');
    api.answering = json;
    const gateway = await startRouteGateway({
      chain,
      upstream: api.url,
      database,
      routes: weather(api.url, flow),
    });
    await eventually(async () =>
      expect(await gateway.paid.get(city, payment)).toMatchObject({ status: 200, json: { sunny: true } }),
    );
    expect((await chain.balance(payTo)) - before).toBe(cent);
    expect(new Set(api.asked.map(({ headers }) => headers['x-net-idempotency-key'])).size).toBe(1);
    const types = await eventTypes(gateway);
    expect(types).toContain(type);
    expect(types.filter((one) => one === 'payment_settled' || one === 'completed')).toEqual([
      'payment_settled',
      'completed',
    ]);
  },
);

test('a request that was refused while the ledger was away leaves its call free for the same payment sent again', async () => {
  const api = await startApi(json);
  const database = await createDatabase();
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const gateway = await startRouteGateway({
    chain,
    upstream: api.url,
    database,
    routes: weather(api.url, 'flow = "upfront"'),
    facilitatorUrl: proxy.url,
    // longer than the test: what is not given back stays taken
    constants: { routes: { leaseSecs: 3_600 } },
  });
  const before = await chain.balance(payTo);
  const payment = header(await signOffer(offerOf(await gateway.paid.get(city))));
  proxy.faults.settle = {
    async change(answer) {
      await database.away(true);
      return answer;
    },
  };
  const refused = await gateway.paid.get(city, payment);
  expect(refused).toMatchObject({ status: 503, json: { code: 'ledger_unavailable' } });
  expect(api.asked).toEqual([]);
  await database.away(false);
  await eventually(async () =>
    expect(await gateway.paid.get(city, payment)).toMatchObject({ status: 200, json: { sunny: true } }),
  );
  expect((await chain.balance(payTo)) - before).toBe(cent);
  expect(api.asked).toHaveLength(1);
});
