import { decodePaymentResponseHeader } from '@x402/fetch';
import { describe, expect, onTestFinished, test } from 'vitest';
import { putResult } from '../../../../src/calls/store/put-result.ts';
import { writeResultHead } from '../../../../src/base/values/answer-price.ts';
import { createRunner, job, priced } from '../../../../src/runner/index.ts';
import { runnerSecret } from '../../../support/gateway.ts';
import { expectIndependent, verifyIndependently } from '../../../support/independent.ts';
import { temporaryFolder } from '../../../support/program.ts';
import { asRunner, failCall, leaseOne, leasingRunner } from '../../../support/leases.ts';
import { signOffer } from '../../../support/payer.ts';
import { exportSealed } from '../../../support/reconcile.ts';
import { startTestRunner, type Reaction } from '../../../support/runner.ts';
import { signUpto } from '../../../support/upto.ts';
import { eventually } from '../../../support/wait.ts';

import {
  complete,
  givenUpBy,
  metered,
  place,
  pushed,
  useRunnerRoutes,
  used,
} from './runner-answers-support.ts';
import { uptoFetch } from './support.ts';

const { start, balance } = useRunnerRoutes();

describe('a route whose answer a runner makes', () => {
  test.each(['poll', 'listen'] as const)(
    'takes of the official client what the runner has used (%s), and two verifiers without shared code accept the record',
    async (way) => {
      const calls: unknown[] = [];
      const runner = createRunner({
        jobs: [
          job({
            serviceId: 1,
            jobIndex: 0,
            on: {
              route({ body, trigger, triggerName, contentType }) {
                calls.push([String(body), trigger, triggerName, contentType]);
                return priced({ words: 2 }, '0.003 USD');
              },
            },
          }),
        ],
      });
      onTestFinished(() => runner.stop({ graceMs: 0 }));
      const tables =
        way === 'poll' ? leasingRunner : pushed((await runner.listen({ secret: runnerSecret, port: 0 })).url);
      const { gateway, database, eventsOf } = await start({ tables });
      if (way === 'poll')
        runner.poll({ gatewayUrl: gateway.url, token: runnerSecret }).catch(() => undefined);
      const before = await balance();
      const response = await uptoFetch(`${gateway.routesUrl}${place}`, {
        method: 'POST',
        body: 'two words',
        headers: { 'content-type': 'text/plain' },
      });
      expect([response.status, await response.json()]).toEqual([200, { words: 2 }]);
      expect(response.headers.get('content-type')).toContain('application/json');
      expect(await balance()).toBe(before + used);
      expect(decodePaymentResponseHeader(response.headers.get('payment-response') ?? '')).toMatchObject({
        success: true,
        amount: String(used),
      });
      expect(calls).toEqual([['two words', 'route', '7.0', 'text/plain']]);
      const types = (await eventsOf()).map(({ type }) => type);
      expect(types.indexOf('call_triggered')).toBeGreaterThan(types.indexOf('settlement_started'));
      expect(types.indexOf('payment_settled')).toBeGreaterThan(types.indexOf('upstream_answered'));
      const { file, checkpoint } = await exportSealed(database);
      expectIndependent(await verifyIndependently(file, [checkpoint]), true);
    },
  );

  test('is sold at its price by exact where its answer does not say what it costs', async () => {
    const started = await start({ more: '' });
    const payment = await signOffer(await started.offer());
    const before = await balance();
    const answered = started.pay(payment);
    await complete(started, await leaseOne(started.gateway), '0.003 USD');
    expect(await answered).toMatchObject({ status: 200, text: 'done' });
    expect(await balance()).toBe(before + 10_000n);
    await started.eventsOf();
  });

  test('moves nothing for work that costs nothing, and gives it', async () => {
    const started = await start();
    const before = await balance();
    const answered = started.pay(await signUpto(await started.offer()));
    await complete(started, await leaseOne(started.gateway), '0 USD');
    expect(await answered).toMatchObject({ status: 200, text: 'done' });
    expect(await balance()).toBe(before);
  });

  test.each([
    ['more than the offer', '0.010000000000000001 USD', 'price_above_offer'],
    ['no price', undefined, 'price_missing'],
    ['NaN', 'NaN USD', 'price_malformed'],
    ['a negative price', '-0.001 USD', 'price_malformed'],
    ['a price in another unit', '1000', 'price_in_another_unit'],
    ['a text that no header has', 'a\u0000b', 'price_malformed'],
  ])('charges nothing and gives nothing if its runner reports %s', async (_, price, reason) => {
    const started = await start();
    const before = await balance();
    const payment = await signUpto(await started.offer());
    const answered = started.pay(payment);
    expect((await complete(started, await leaseOne(started.gateway), price)).status).toBe(200);
    expect(await answered).toMatchObject({ status: 502, json: { code: 'upstream_unanswered' } });
    expect(await balance()).toBe(before);
    const failure = (await started.eventsOf()).find(({ type }) => type === 'settlement_failed');
    expect(failure?.data).toMatchObject({ reason });
  });

  test('charges what its runner reported first: a second report of the same lease, and one of a lost lease, change nothing', async () => {
    const started = await start();
    const before = await balance();
    const answered = started.pay(await signUpto(await started.offer()));
    const leased = await leaseOne(started.gateway);
    const other = { ...leased, lease_id: '00000000-0000-4000-8000-000000000000' };
    expect((await complete(started, other, '0.009 USD')).status).toBe(409);
    await complete(started, leased, '0.003 USD');
    expect((await complete(started, leased, '0.008 USD')).status).toBe(200);
    expect(await answered).toMatchObject({ status: 200, text: 'done' });
    expect(await balance()).toBe(before + used);
    await started.eventsOf();
  });

  test('takes two headers of a pushed answer for no price', async () => {
    const answer: Reaction = { status: 200, body: 'done', headers: { 'x-price': '0.001 USD, 0.002 USD' } };
    const { url } = await startTestRunner(() => answer);
    const { offer, pay, eventsOf } = await start({ tables: pushed(url) });
    expect((await pay(await signUpto(await offer()))).status).toBe(502);
    expect((await eventsOf()).find(({ type }) => type === 'settlement_failed')?.data).toMatchObject({
      reason: 'price_malformed',
    });
  });

  test('charges nothing if its runner refuses the call, which then waits for no operator', async () => {
    const started = await start();
    const before = await balance();
    const payment = await signUpto(await started.offer());
    const answered = started.pay(payment);
    await failCall(started.gateway, await leaseOne(started.gateway), { error: 'no such language' });
    expect(await answered).toMatchObject({ status: 502, json: { code: 'upstream_unanswered' } });
    expect(await started.receiptOf(payment)).toMatchObject({ state: 'settlement_failed', paid: false });
    await eventually(async () => expect(await givenUpBy(started)).toBe('route'));
    expect(await balance()).toBe(before);
  });

  test('charges nothing if no runner takes the call in time, and no runner gets it afterwards', async () => {
    const started = await start({ more: `${metered}\ntimeout_ms = 1_000` });
    const before = await balance();
    expect(await started.pay(await signUpto(await started.offer()))).toMatchObject({ status: 502 });
    await eventually(async () => expect(await givenUpBy(started)).toBe('route'));
    const leases = await asRunner(started.gateway, '/runner/leases', { max: 1, lease_secs: 60 });
    expect(leases.json.calls).toEqual([]);
    expect(await balance()).toBe(before);
  });

  test('does not repeat an attempt that fails after its request has ended', async () => {
    const started = await start({ more: `${metered}\ntimeout_ms = 1_000` });
    const answered = started.pay(await signUpto(await started.offer()));
    const leased = await leaseOne(started.gateway);
    expect(await answered).toMatchObject({ status: 502 });
    await failCall(started.gateway, leased, { retry: true });
    await eventually(async () => expect(await givenUpBy(started)).toBe('route'));
  });

  test('charges the price of the first report also if that was not recorded with its result', async () => {
    const started = await start();
    const before = await balance();
    const answered = started.pay(await signUpto(await started.offer()));
    const leased = await leaseOne(started.gateway);
    const at = { callId: leased.call_id, attempt: 1, leaseId: leased.lease_id };
    const head = writeResultHead('0.003 USD');
    await putResult(started.database.pool, at, 'text/plain', Buffer.from('done'), head);
    await complete(started, leased, '0.004 USD');
    expect(await answered).toMatchObject({ status: 200, text: 'done' });
    expect(await balance()).toBe(before + used);
  });

  test('passes on a result without a body', async () => {
    const started = await start();
    const answered = started.pay(await signUpto(await started.offer()));
    const { call_id: id, lease_id } = await leaseOne(started.gateway);
    await asRunner(started.gateway, `/runner/calls/${id}/complete`, { lease_id, price: '0.003 USD' });
    expect(await answered).toMatchObject({ status: 200, text: '' });
  });

  test('passes on a long result from the result store', async () => {
    const long = Buffer.alloc(300_000, 'a');
    const runner = createRunner({
      jobs: [job({ serviceId: 1, jobIndex: 0, on: { route: () => priced(long, '0.003 USD') } })],
    });
    onTestFinished(() => runner.stop({ graceMs: 0 }));
    const started = await start({
      tables: `${leasingRunner}\n[result_store]\nlocation = "${temporaryFolder()}"\nmax_bytes = 8000000\n`,
      constants: { delivery: { maxResultBytes: 65_536 } },
    });
    runner.poll({ gatewayUrl: started.gateway.url, token: runnerSecret }).catch(() => undefined);
    const before = await balance();
    const payment = await signUpto(await started.offer());
    for (let times = 0; times < 2; times++)
      expect(await started.pay(payment)).toMatchObject({ status: 200, text: String(long) });
    expect(await balance()).toBe(before + used);
    await started.eventsOf();
  });
});
