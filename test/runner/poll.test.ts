import { describe, expect, test } from 'vitest';
import { job, type PollOptions, Refuse } from '../../src/runner/index.ts';
import { soonMs } from '../support/time-limits.ts';
import { eventually } from '../support/wait.ts';
import { type FakeGateway, leaseToken, send } from './fake-gateway.ts';
import { requestCount, fakeGateway, polling } from './polling.ts';
import { gate } from './support.ts';

describe('the result of a leased call', () => {
  test.each<[string, (response: Parameters<FakeGateway['misbehave']>[1]) => unknown]>([
    ['does not answer', (response) => response.destroy()],
    ['answers 500', (response) => send(response, 500, { error: 'oh' })],
    ['answers 404 without an error code', (response) => send(response, 404, 'nothing here')],
  ])('is sent again until the gateway accepts it, when the gateway first %s', async (_name, misbehave) => {
    const gateway = await fakeGateway();
    let runs = 0;
    const { errors } = polling(gateway, ({ callId }) => {
      runs += 1;
      if (callId === 2) throw new Refuse('no');
      return 'once';
    });
    gateway.misbehave = ({ path }, response) => {
      const isReport = path.endsWith('complete') || path.endsWith('fail');
      const toldBefore = gateway.requests.filter((request) => request.path === path).length - 1;
      if (!isReport || toldBefore >= 2) return false;
      misbehave(response);
      return true;
    };
    gateway.offer({ id: 1 }, { id: 2 });
    await eventually(() => expect([gateway.completed.size, gateway.failed.length]).toEqual([1, 1]));
    expect(runs).toBe(2);
    expect(errors.map(({ code }) => code)).toEqual(['result_undelivered', 'result_undelivered']);
  });

  test('is sent again when the answer of the gateway was lost, and is recorded once', async () => {
    const gateway = await fakeGateway();
    gateway.misbehave = ({ path }, response) => {
      // the answer that follows goes nowhere
      if (path.endsWith('complete') && requestCount(gateway, 'complete') === 1) response.socket?.destroy();
      return false;
    };
    const { calls } = polling(gateway, () => 'x');
    gateway.offer({ id: 1 });
    await eventually(() => expect(requestCount(gateway, 'complete')).toBe(2));
    expect([...gateway.completed.keys(), ...calls.map(({ callId }) => callId)]).toEqual([1, 1]);
  });

  test('that is too large for the gateway makes the call a dead letter', async () => {
    const gateway = await fakeGateway();
    gateway.misbehave = ({ path }, response) => {
      if (!path.endsWith('complete')) return false;
      send(response, 413, { error: 'too large', code: 'result_too_large' });
      return true;
    };
    const { errors } = polling(gateway, () => 'x');
    gateway.offer({ id: 1 });
    await eventually(() => expect(gateway.failed).toMatchObject([{ callId: 1, retry: false }]));
    expect(errors.map(({ code }) => code)).toEqual(['result_undelivered']);
  });
});

describe('polling', () => {
  test('rejects with an error when the gateway does not know the token', async () => {
    const gateway = await fakeGateway();
    const { polled, errors } = polling(gateway, () => 'x', { poll: { token: 'wrong' } });
    await expect(polled).rejects.toMatchObject({
      code: 'gateway_refused',
      message: expect.stringContaining('does not know this token') as string,
    });
    expect([requestCount(gateway, 'leases'), errors.length]).toEqual([1, 1]);
  });

  test('rejects with an error when the token is not for all services, and can be limited to fewer', async () => {
    const gateway = await fakeGateway();
    const on = { x402: () => 'x' };
    const jobs = [1, 2].map((serviceId) => job({ serviceId, jobIndex: 0, on }));
    gateway.misbehave = ({ body }, response) => {
      const isAllowed = !(body['services'] as number[] | undefined)?.includes(2);
      if (!isAllowed) send(response, 403, { error: 'This token does not allow that.', code: 'forbidden' });
      return !isAllowed;
    };
    const { polled, runner } = polling(gateway, () => 'x', { jobs });
    await expect(polled).rejects.toThrow('poll({ services }) can name fewer');
    gateway.offer({ id: 1 });
    void runner.poll({ gatewayUrl: gateway.url, token: leaseToken, services: [1] });
    await eventually(() => expect(gateway.completed.has(1)).toBe(true));
  });

  test.each<[string, (response: Parameters<FakeGateway['misbehave']>[1]) => unknown]>([
    ['closes connections', (response) => response.destroy()],
    ['answers 503', (response) => send(response, 503, { error: 'not ready' })],
    ['answers with a page of a proxy', (response) => response.writeHead(200).end('<html>')],
    ['answers with an invalid body', (response) => send(response, 200, { calls: [1] })],
  ])('retries while the gateway %s', async (_name, misbehave) => {
    const gateway = await fakeGateway();
    gateway.misbehave = (_request, response) => {
      if (requestCount(gateway, 'leases') > 2) return false;
      misbehave(response);
      return true;
    };
    const { errors } = polling(gateway, () => 'x');
    gateway.offer({ id: 1 });
    await eventually(() => expect(gateway.completed.has(1)).toBe(true));
    expect(errors.map(({ code }) => code)).toEqual(['gateway_unreachable', 'gateway_unreachable']);
  });

  test('pauses between requests to a gateway that does not wait for calls', async () => {
    const gateway = await fakeGateway();
    polling(gateway, () => 'x', { poll: { waitSecs: 0 } });
    const startedAt = performance.now();
    await eventually(() => expect(requestCount(gateway, 'leases')).toBeGreaterThanOrEqual(3));
    expect(performance.now() - startedAt).toBeGreaterThan(1_900);
  });

  test.each<[string, Partial<PollOptions>]>([
    ['max', { max: 0 }],
    ['services', { services: [2] }],
    ['services', { services: [] }],
    ['leaseSecs', { leaseSecs: 4 }],
    ['waitSecs', { waitSecs: 31 }],
    ['token', { token: '' }],
    ['gatewayUrl', { gatewayUrl: 'ftp://gateway' }],
  ])('rejects immediately with an invalid %s', async (option, options) => {
    const gateway = await fakeGateway();
    const { polled } = polling(gateway, () => 'x', { poll: options });
    await expect(polled).rejects.toThrow(option);
    expect(gateway.requests).toEqual([]);
  });

  test('fetches no more calls after stop(), and finishes the running ones', async () => {
    const gateway = await fakeGateway();
    const { open, opened } = gate();
    let runs = 0;
    const { runner, polled } = polling(
      gateway,
      async () => {
        runs += 1;
        await opened;
        return 'finished';
      },
      { concurrency: 1 },
    );
    gateway.offer({ id: 1 }, { id: 2 });
    await eventually(() => expect(runs).toBe(1));
    const stopped = runner.stop();
    open();
    await Promise.all([stopped, polled]);
    expect([...gateway.completed.keys()]).toEqual([1]);
    await expect(runner.poll({ gatewayUrl: gateway.url, token: leaseToken })).rejects.toThrow('stopped');
  });

  test('stops immediately while it waits for calls', async () => {
    const gateway = await fakeGateway();
    const { runner, polled } = polling(gateway, () => 'x', { poll: { waitSecs: 30 } });
    await eventually(() => expect(requestCount(gateway, 'leases')).toBe(1));
    const startedAt = performance.now();
    await runner.stop();
    await polled;
    expect(performance.now() - startedAt).toBeLessThan(soonMs(1_000));
  });

  test('gives back the calls that do not end within graceMs', async () => {
    const gateway = await fakeGateway();
    const { runner, polled } = polling(gateway, () => new Promise<void>(() => {}));
    gateway.offer({ id: 1 });
    await eventually(() => expect(requestCount(gateway, 'leases')).toBe(2));
    await runner.stop({ graceMs: 1 });
    await polled;
    expect(gateway.failed).toEqual([
      { callId: 1, retry: true, retryAfterSecs: 1, error: 'runner_stopping: the runner is stopping' },
    ]);
  });

  test('ends in bounded time when the gateway cannot be reached', async () => {
    const gateway = await fakeGateway();
    const { runner, polled, errors } = polling(gateway, () => 'x');
    gateway.misbehave = ({ path }, response) => {
      if (path.endsWith('complete')) response.destroy();
      return path.endsWith('complete');
    };
    gateway.offer({ id: 1 });
    await eventually(() => expect(requestCount(gateway, 'complete')).toBeGreaterThan(0));
    await runner.stop({ graceMs: 1 });
    await polled;
    expect(errors.at(-1)).toMatchObject({
      code: 'result_undelivered',
      message: expect.stringContaining('given up') as string,
    });
  });
});
