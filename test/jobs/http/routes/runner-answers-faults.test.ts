import { describe, expect, test } from 'vitest';
import { pause } from '../../../../src/base/runtime/pause.ts';
import { landPayment } from '../../../support/onchain.ts';
import { createDatabase } from '../../../support/database.ts';
import { asRunner, failCall, type Leased, leaseOne, leasingRunner } from '../../../support/leases.ts';
import { header, offerOf, signOffer } from '../../../support/payer.ts';
import { signUpto } from '../../../support/upto.ts';
import { eventually } from '../../../support/wait.ts';
import { soon } from '../../../payments/use-cases/settlement-support.ts';
import { eventTypes, spawnRouteGateway, startRouteGateway } from './support.ts';

import {
  complete,
  givenUpBy,
  metered,
  place,
  soldJob,
  useRunnerRoutes,
  used,
} from './runner-answers-support.ts';

const { chain, start, balance } = useRunnerRoutes();

describe('a route whose answer a runner makes', () => {
  test('gives a client that left its answer by the same payment, and charges it once', async () => {
    const started = await start();
    const before = await balance();
    const payment = await signUpto(await started.offer());
    const leaving = new AbortController();
    const left = fetch(`${started.gateway.routesUrl}${place}`, {
      method: 'POST',
      body: 'one',
      headers: { 'content-type': 'text/plain', ...header(payment) },
      signal: leaving.signal,
    }).catch(() => 'left');
    const leased = await leaseOne(started.gateway);
    leaving.abort();
    expect(await left).toBe('left');
    await complete(started, leased, '0.003 USD');
    await soon(started.database, async () =>
      expect(await started.receiptOf(payment)).toMatchObject({ state: 'completed' }),
    );
    expect(await started.pay(payment)).toMatchObject({ status: 200, text: 'done' });
    expect(await balance()).toBe(before + used);
    await started.eventsOf();
  });

  test('makes one call and one charge of one payment that two gateways get twice', async () => {
    const database = await createDatabase();
    const [one, other] = [await start({ database }), await start({ database })];
    const before = await balance();
    const payment = await signUpto(await one.offer());
    const answers = [one, other, one, other].map(({ pay }) => pay(payment));
    await complete(one, await leaseOne(other.gateway), '0.003 USD');
    await Promise.all(answers);
    expect(await one.pay(payment)).toMatchObject({ status: 200, text: 'done' });
    expect(await balance()).toBe(before + used);
    const types = (await one.eventsOf()).map(({ type }) => type);
    expect(types.filter((type) => type === 'call_triggered')).toHaveLength(1);
  });

  test('lets one payer have four calls that are not paid, also after their requests have ended', async () => {
    const started = await start({ more: `${metered}\ntimeout_ms = 1_000` });
    const pay = async () => started.pay(await signUpto(await started.offer()));
    const held: Leased[] = [];
    for (let round = 0; round < 2; round++) {
      let isOver = false;
      const over = Promise.all(Array.from({ length: 4 }, pay)).finally(() => (isOver = true));
      const lease = { max: 4, lease_secs: 60, wait_secs: 1 };
      while (!isOver) held.push(...(await asRunner(started.gateway, '/runner/leases', lease)).json.calls);
      await over;
    }
    expect(held).toHaveLength(4);
    expect(await pay()).toMatchObject({ status: 503 });
    for (const leased of held) await failCall(started.gateway, leased);
    const next = pay();
    await complete(started, await leaseOne(started.gateway), '0.003 USD');
    expect((await next).status).toBe(200);
  });

  test('asks its runner again for a payment that has landed, and whose first request ended without an answer', async () => {
    const started = await start({ more: 'timeout_ms = 1_000' });
    const payment = await signOffer(await started.offer());
    await landPayment(chain.rpcUrl, payment);
    expect(await started.pay(payment)).toMatchObject({ status: 502, json: { code: 'upstream_failed' } });
    const again = started.pay(payment);
    await complete(started, await leaseOne(started.gateway));
    expect(await again).toMatchObject({ status: 200, text: 'done' });
    await started.eventsOf();
  });

  test('owes back a payment that lands after its request was refused, if its call was given up', async () => {
    const delivery = { maxAttempts: 2, backoffBaseMs: 1, backoffCapMs: 1 };
    const started = await start({ more: 'timeout_ms = 1_000', constants: { delivery } });
    const payment = await signOffer(await started.offer());
    expect((await started.pay(payment)).status).toBe(502);
    await eventually(async () => expect(await givenUpBy(started)).toBe('route'));
    await landPayment(chain.rpcUrl, payment);
    await eventually(async () =>
      expect(await started.pay(payment)).toMatchObject({ status: 410, json: { code: 'refund_due' } }),
    );
    await started.eventsOf();
  });

  test.each(['ready', 'leased'] as const)(
    'gives up a call that was %s as its gateway stopped, before another runner gets it',
    async (state) => {
      const database = await createDatabase();
      const constants = { delivery: { backoffBaseMs: 600_000, backoffCapMs: 600_000 } };
      const started = await start({ more: `${metered}\ntimeout_ms = 2_000`, database, constants });
      const answered = started.pay(await signUpto(await started.offer()));
      const calls = async () =>
        (await database.pool.query(`select from tollbook.call where trigger_kind = 'route'`)).rowCount;
      await eventually(async () => expect(await calls()).toBe(1));
      const leased = state === 'leased' ? await leaseOne(started.gateway) : undefined;
      await started.gateway.stop();
      expect((await answered).status).toBe(502);
      const next = await start({ database, constants });
      if (leased) await failCall(next.gateway, leased, { retry: true });
      await eventually(async () => expect(await calls()).toBe(0));
      expect(await givenUpBy(next)).toBe('route');
    },
  );

  test('is not sold, and uses up no payment, while calls of triggers fill the outbox', async () => {
    const started = await start({ tables: `${leasingRunner}\n[limits]\nmax_outstanding_calls = 1\n` });
    const [one, other] = [await signUpto(await started.offer()), await signUpto(await started.offer())];
    const first = started.pay(one);
    const leased = await leaseOne(started.gateway);
    await eventually(async () => expect(await started.pay(other)).toMatchObject({ status: 503 }));
    await complete(started, leased, '0.003 USD');
    expect((await first).status).toBe(200);
    expect((await started.eventsOf()).map(({ type }) => type)).not.toContain('settlement_failed');
  });

  test('answers a request also if the database was away while its runner worked', async () => {
    const started = await start();
    const answered = started.pay(await signUpto(await started.offer()));
    const leased = await leaseOne(started.gateway);
    await started.database.away(true);
    await pause(1_500);
    await started.database.away(false);
    await eventually(async () => expect((await complete(started, leased, '0.003 USD')).status).toBe(200));
    expect(await answered).toMatchObject({ status: 200, text: 'done' });
    await started.eventsOf();
  });

  test('is not sold while no runner polls for its job', async () => {
    const silence = `${leasingRunner}
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
max_runner_silence_secs = 1
[job_prices.1]
0 = "1"
`;
    const started = await start({ tables: silence });
    const waiting = started.pay(await signUpto(await started.offer()));
    await eventually(async () =>
      expect(await started.gateway.paid.post(place, { body: 'one' })).toMatchObject({
        status: 503,
        json: { code: 'upstream_unavailable' },
      }),
    );
    await complete(started, await leaseOne(started.gateway), '0.003 USD');
    expect((await waiting).status).toBe(200);
  });
});

test('a request whose gateway was killed while its runner worked is answered by another gateway from the same call, and charged once', async () => {
  const database = await createDatabase();
  const free = `\n[[routes]]\nservice_id = 7\njob_index = 9\npath = "/weather/:city"\nupstream = "http://127.0.0.1:1"\nprice = "1 USD"\n`;
  const routes = `${soldJob(`${metered}\ntimeout_ms = 3_000`)}${free}${leasingRunner}`;
  const { program, paid: killed } = await spawnRouteGateway(chain, database, routes);
  const gateway = await startRouteGateway({ chain, upstream: '', database, routes });
  const before = await balance();
  const payment = header(await signUpto(offerOf(await killed.post(place, { body: 'one' }))));
  const cut = killed.post(place, { body: 'one', headers: payment }).catch(() => 'cut');
  const leased = await leaseOne(gateway);
  program.kill('SIGKILL');
  expect(await cut).toBe('cut');
  await complete({ gateway }, leased, '0.003 USD');
  await eventually(async () =>
    expect(await gateway.paid.post(place, { body: 'one', headers: payment })).toMatchObject({
      status: 200,
      text: 'done',
    }),
  );
  expect((await balance()) - before).toBe(used);
  const types = await eventTypes(gateway);
  expect(types).toContain('upstream_repeated');
  expect(types.filter((type) => type === 'call_triggered' || type === 'payment_settled')).toEqual([
    'call_triggered',
    'payment_settled',
  ]);
});
