import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../../src/devnet/ports.ts';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { clientOf, configText, payTo, receiptKey } from '../../../support/gateway.ts';
import { header, offerOf, signOffer } from '../../../support/payer.ts';
import { root } from '../../../support/pages.ts';
import { spawnProgram, temporaryFolder } from '../../../support/program.ts';
import { eventually } from '../../../support/wait.ts';
import {
  eventTypes,
  json,
  routeTables,
  routeToken,
  startApi,
  startRouteGateway,
  weather,
} from './support.ts';

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
    const port = await freePort();
    const file = path.join(temporaryFolder(), 'tollbook.toml');
    writeFileSync(file, configText({ database, chain, ...routeTables(port, weather(api.url, flow)) }));
    const program = spawnProgram(
      [process.execPath, '--import', './scripts/check-node.mjs', 'test/chaos/serve.ts'].concat([
        '{"routes":{"leaseSecs":3}}',
        '--config',
        file,
      ]),
      root,
      { DATABASE_URL: database.url, RECEIPT_KEY: receiptKey, ROUTE_TOKEN: routeToken },
    );
    onTestFinished(() => program.kill('SIGKILL'));
    const killed = clientOf(`http://127.0.0.1:${port}`);
    await eventually(async () => expect((await killed.get(city)).status).toBe(402));
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
