import { describe, expect, test } from 'vitest';
import { type Handler, job, type JobCall, Refuse, RetryLater } from '../../src/runner/index.ts';
import { eventually } from '../support/wait.ts';
import { leaseToken, send } from './fake-gateway.ts';
import { requestCount, fakeGateway, polling } from './polling.ts';
import { gate, keyOf, pushed, quoteDigest, secret } from './support.ts';

describe('a leased call', () => {
  test('is passed to the handler in the same form as a pushed call', async () => {
    const gateway = await fakeGateway();
    const received: JobCall[] = [];
    const { runner } = polling(gateway, (call) => {
      received.push(call);
      return { echo: call.body.toString('base64') };
    });
    const change = { id: 9, body: Buffer.of(0, 255), contentType: 'image/png', caller: '0xcafe' };
    gateway.offer(change);
    const result = {
      content_type: 'application/json',
      body_base64: Buffer.from('{"echo":"AP8="}').toString('base64'),
    };
    await eventually(() => expect(gateway.completed.get(9)).toEqual(result));
    await runner.handle(pushed(change), { secret });
    const [leased, pushedCall] = received.map(({ signal, progress, ...call }) => [
      call,
      typeof progress,
      signal.aborted,
    ]);
    expect(leased).toEqual(pushedCall);
    expect(leased).toMatchObject([
      { callId: 9, idempotencyKey: keyOf(9), quoteDigest, caller: '0xcafe', contentType: 'image/png' },
      'function',
      false,
    ]);
  });

  test('is requested and completed with the documented bodies', async () => {
    const gateway = await fakeGateway();
    const on = { x402: () => undefined };
    polling(gateway, () => 'x', {
      jobs: [
        job({ serviceId: 3, jobIndex: 0, on }),
        job({ serviceId: 3, jobIndex: 1, on }),
        job({ serviceId: 5, jobIndex: 0, on }),
      ],
      concurrency: 4,
      poll: { max: 100, leaseSecs: 30, waitSecs: 1, gatewayUrl: `${gateway.url}/` },
    });
    gateway.offer({ id: 1, serviceId: 4 }, { id: 2, serviceId: 5 });
    await eventually(() => expect([...gateway.completed]).toEqual([[2, undefined]]));
    expect(gateway.requests[0]).toEqual({
      path: '/runner/leases',
      authorization: `Bearer ${leaseToken}`,
      body: { max: 4, lease_secs: 30, wait_secs: 1, services: [3, 5] },
    });
    expect(gateway.requests.find(({ path }) => path.endsWith('complete'))?.body).toEqual({
      lease_id: 'lease-1',
    });
  });

  /** How else a handler ends a call is in handler.test.ts. */
  test.each<[string, Handler, unknown]>([
    [
      'throws RetryLater with a time',
      () => {
        throw new RetryLater('not yet', { afterSecs: 29.5 });
      },
      { retry: true, error: 'retry_later: not yet', retryAfterSecs: 30 },
    ],
    [
      'throws Refuse',
      () => {
        throw new Refuse('no such thing');
      },
      { retry: false, error: 'refused: no such thing' },
    ],
  ])(
    'whose handler %s is reported as failed with the error and whether to retry',
    async (_name, handler, failure) => {
      const gateway = await fakeGateway();
      let tries = 0;
      const once: Handler = (call) => ((tries += 1) === 1 ? handler(call) : 'at last');
      polling(gateway, once);
      gateway.offer({ id: 4 });
      await eventually(() => expect(gateway.failed[0]).toMatchObject({ callId: 4, ...(failure as object) }));
      // a call that is retried comes back, one that is not does not
      gateway.offer({ id: 5 });
      const { retry } = failure as { retry: boolean };
      await eventually(() =>
        expect(new Set(gateway.completed.keys())).toEqual(new Set(retry ? [4, 5] : [5])),
      );
    },
  );

  test('that lacks required metadata becomes a dead letter, and the other calls run', async () => {
    const gateway = await fakeGateway();
    gateway.misbehave = ({ path }, response) => {
      if (!path.endsWith('leases') || requestCount(gateway, 'leases') > 1) return false;
      const call = { call_id: 3, lease_id: 'l', attempt: 1, service_id: 1, job_index: 0, metadata: {} };
      send(response, 200, { calls: [{ ...call, content_type: null, body_base64: '' }] });
      return true;
    };
    polling(gateway, () => 'x');
    gateway.offer({ id: 4 });
    await eventually(() => expect(gateway.completed.has(4)).toBe(true));
    await eventually(() =>
      expect(gateway.requests.find(({ path }) => path === '/runner/calls/3/fail')?.body).toMatchObject({
        retry: false,
      }),
    );
  });

  test('is never run beyond the concurrency, and is not fetched before it can run', async () => {
    const gateway = await fakeGateway();
    let running = 0;
    let most = 0;
    const handler: Handler = async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    gateway.offer(...Array.from({ length: 60 }, (_, index) => ({ id: index + 1 })));
    polling(gateway, handler, { concurrency: 3, poll: { max: 50 } });
    await eventually(() => expect(gateway.completed.size).toBe(60));
    expect(most).toBe(3);
    const requestedMax = gateway.requests
      .filter(({ path }) => path.endsWith('leases'))
      .map(({ body }) => body['max']);
    expect(Math.max(...(requestedMax as number[]))).toBe(3);
  });

  test('of a job with its own concurrency waits for a slot, and its lease is extended', async () => {
    const gateway = await fakeGateway({ leaseMs: 3_000 });
    const { open, opened } = gate();
    const order: number[] = [];
    const handler: Handler = async ({ callId }) => {
      order.push(callId);
      await opened;
    };
    polling(gateway, () => 'x', {
      jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: handler }, concurrency: 1 })],
    });
    gateway.offer({ id: 1 }, { id: 2 });
    const extended = (id: number): boolean =>
      gateway.requests.some(({ path }) => path === `/runner/calls/${id}/extend`);
    await eventually(() => expect(extended(1) && extended(2)).toBe(true));
    expect(order).toEqual([1]);
    open();
    await eventually(() => expect(gateway.completed.size).toBe(2));
    expect(order).toEqual([1, 2]);
  });
});

describe('a lease', () => {
  test('is extended while the handler runs, beyond its first expiry', async () => {
    const gateway = await fakeGateway({ leaseMs: 2_000 });
    const { open, opened } = gate();
    let runs = 0;
    polling(gateway, async () => {
      runs += 1;
      await opened;
    });
    gateway.offer({ id: 1 });
    await eventually(() => expect(requestCount(gateway, 'extend')).toBeGreaterThan(0));
    const [firstEnd] = gateway.leaseEnds;
    await eventually(() => expect(Date.now()).toBeGreaterThan(Number(firstEnd)));
    open();
    await eventually(() => expect(gateway.completed.has(1)).toBe(true));
    expect([runs, gateway.leased()]).toEqual([1, 1]);
    expect(gateway.requests.find(({ path }) => path.endsWith('extend'))?.body).toEqual({
      lease_id: 'lease-1',
      lease_secs: 60,
    });
  });

  test('that is lost aborts the handler, and its result is dropped', async () => {
    const gateway = await fakeGateway({ leaseMs: 1_500 });
    let aborted: unknown;
    const { errors, calls } = polling(
      gateway,
      ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            aborted = signal.reason;
            resolve('too late');
          });
        }),
    );
    gateway.offer({ id: 1 });
    await eventually(() => expect(requestCount(gateway, 'extend')).toBeGreaterThan(0));
    gateway.steal(1);
    await eventually(() => expect(calls).toMatchObject([{ callId: 1, outcome: 'lost', code: 'lease_lost' }]));
    expect(aborted).toBeInstanceOf(Error);
    expect(errors).toMatchObject([{ code: 'lease_lost', call: { callId: 1 } }]);
    expect([requestCount(gateway, 'complete'), requestCount(gateway, 'fail')]).toEqual([0, 0]);
  });

  test('that is lost before the result is sent drops the result, and onError reports it', async () => {
    const gateway = await fakeGateway();
    const { errors } = polling(gateway, () => {
      gateway.steal(1);
      return 'late';
    });
    gateway.offer({ id: 1 });
    await eventually(() =>
      expect(errors).toMatchObject([{ code: 'result_undelivered', call: { callId: 1 } }]),
    );
    expect([gateway.completed.size, gateway.failed.length]).toEqual([0, 0]);
  });

  test('is kept when the gateway is unreachable for a moment', async () => {
    const gateway = await fakeGateway({ leaseMs: 3_000 });
    const { open, opened } = gate();
    const { errors } = polling(gateway, () => opened);
    gateway.misbehave = ({ path }, response) => {
      if (!path.endsWith('extend') || requestCount(gateway, 'extend') > 2) return false;
      response.destroy();
      return true;
    };
    gateway.offer({ id: 1 });
    await eventually(() => expect(requestCount(gateway, 'extend')).toBeGreaterThanOrEqual(4));
    open();
    await eventually(() => expect(gateway.completed.has(1)).toBe(true));
    expect(errors).toEqual([]);
  });

  test('that expired and returns to the same runner shares the result of the run', async () => {
    const gateway = await fakeGateway({ leaseMs: 1_000 });
    const { open, opened } = gate();
    let runs = 0;
    const { errors } = polling(gateway, async ({ signal }) => {
      runs += 1;
      await opened;
      return `aborted: ${signal.aborted}`;
    });
    gateway.misbehave = ({ body, path }, response) => {
      const isFirst = path.endsWith('extend') && body['lease_id'] === 'lease-1' && gateway.leased() < 2;
      if (isFirst) response.destroy();
      return isFirst;
    };
    gateway.offer({ id: 1 });
    await eventually(() => expect(errors).toMatchObject([{ code: 'lease_lost' }]));
    open();
    await eventually(() => expect(gateway.completed.size).toBe(1));
    expect(gateway.completed.get(1)).toMatchObject({
      body_base64: Buffer.from('aborted: false').toString('base64'),
    });
    expect([runs, gateway.failed]).toEqual([1, []]);
  });
});
