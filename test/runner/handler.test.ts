import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  createRunner,
  type Handler,
  job,
  type JobCall,
  Refuse,
  priced,
  type Result,
  RetryLater,
  type RunnerError,
  type RunnerOptions,
} from '../../src/runner/index.ts';
import { eventually } from '../support/wait.ts';
import { errorOf, gate, keyOf, quoteDigest, runnerOf, textOf, type Tried } from './support.ts';

function runnerFor(handler: Handler, options: Omit<RunnerOptions, 'jobs'> = {}): Tried {
  return runnerOf({ ...options, jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: handler } })] });
}

describe('a handler', () => {
  test('receives all metadata of a call, and its body unchanged', async () => {
    const received: JobCall[] = [];
    const { push, calls, errors } = runnerFor((call) => void received.push(call));
    const body = Buffer.of(0, 255, 13, 10);
    await push({ id: 42, attempt: 3, body, contentType: 'image/png', caller: '0xcafe' });
    expect(received).toEqual([
      {
        callId: 42,
        idempotencyKey: keyOf(42),
        attempt: 3,
        serviceId: 1,
        jobIndex: 0,
        trigger: 'x402',
        quoteDigest,
        paymentNetwork: 'eip155:84532',
        paymentAsset: '0xa5',
        paymentToken: 'USDC',
        caller: '0xcafe',
        contentType: 'image/png',
        body,
        maxResultBytes: 1_048_576,
        input: undefined,
        progress: expect.any(Function) as JobCall['progress'],
        signal: expect.any(AbortSignal) as AbortSignal,
      },
    ]);
    const facts = {
      callId: 42,
      idempotencyKey: keyOf(42),
      attempt: 3,
      serviceId: 1,
      jobIndex: 0,
      trigger: 'x402',
      quoteDigest,
    };
    expect(calls).toEqual([
      { ...facts, via: 'push', outcome: 'completed', durationMs: expect.any(Number) as number },
    ]);
    expect(errors).toEqual([]);
  });

  test.each<[string, Result, number, string | undefined, string]>([
    ['text', 'grüezi', 200, 'text/plain; charset=utf-8', 'grüezi'],
    ['bytes', Buffer.from('raw'), 200, 'application/octet-stream', 'raw'],
    ['an object', { a: [1, null] }, 200, 'application/json', '{"a":[1,null]}'],
    ['a list', [1, 2], 200, 'application/json', '[1,2]'],
    ['null', null, 200, 'application/json', 'null'],
    ['zero', 0, 200, 'application/json', '0'],
    ['nothing', undefined, 204, undefined, ''],
    ['no text', '', 200, 'text/plain; charset=utf-8', ''],
    ['typed text', { contentType: 'text/html', body: '<p>' }, 200, 'text/html', '<p>'],
    ['typed bytes', { contentType: 'image/gif', body: Buffer.from('GIF') }, 200, 'image/gif', 'GIF'],
    [
      'an object with the keys of typed bytes',
      { contentType: 'a', body: 1 },
      200,
      'application/json',
      '{"contentType":"a","body":1}',
    ],
  ])('may return %s', async (_name, result, status, contentType, body) => {
    const answer = await runnerFor(() => result).push();
    expect([answer.status, answer.headers['content-type'], textOf(answer)]).toEqual([
      status,
      contentType,
      body,
    ]);
  });

  const circular: { self?: unknown } = {};
  circular.self = circular;
  test.each<[string, Result]>([
    ['a value that JSON cannot represent', { big: 1n }],
    ['a circular object', circular],
    ['a function', () => 1],
    ['a Response', new Response('x')],
    ['a Map', new Map([[1, 2]])],
    ['a content type that would break a header', { contentType: 'a\r\nb: c', body: '' }],
  ])('that returns %s is retried, and the error is reported to onError', async (_name, result) => {
    const { push, errors } = runnerFor(() => result);
    expect(errorOf(await push())).toEqual([500, 'handler_failed']);
    expect(errors).toMatchObject([{ code: 'handler_failed', cause: expect.any(TypeError) as TypeError }]);
  });

  test.each<[string, Result, number, string]>([
    ['a value', { words: 2 }, 200, '{"words":2}'],
    ['nothing', undefined, 204, ''],
  ])('that says what %s costs answers with the price in a header', async (_name, result, status, text) => {
    const answer = await runnerFor(() => priced(result, '0.006 USD')).push();
    expect([answer.status, textOf(answer), answer.headers['x-price']]).toEqual([status, text, '0.006 USD']);
  });

  test.each(['', '-1 USD', 'NaN', '1e3', '0.006USD', '0.5', '1 EUR', '01 USD'])(
    'cannot say that its result costs %j',
    (price) => {
      expect(() => priced('x', price)).toThrow('is no price');
    },
  );

  test('that returns too large a result makes its call a dead letter, because a retry would have the same result', async () => {
    const { push, errors } = runnerFor(() => 'x'.repeat(1_001), { maxResultBytes: 1_000 });
    expect(errorOf(await push())).toEqual([422, 'result_too_large']);
    expect(errors).toMatchObject([{ code: 'result_too_large', call: { callId: 7 } }]);
    const exact = await runnerFor(() => 'ü'.repeat(500), { maxResultBytes: 1_000 }).push();
    expect(exact.status).toBe(200);
    const bytes = await runnerFor(() => 'ü'.repeat(501), { maxResultBytes: 1_000 }).push();
    expect(bytes.status).toBe(422);
  });

  test.each<[string, unknown]>([
    ['an error', new Error('the database password is hunter2')],
    ['no error at all', undefined],
    ['a text', 'hunter2'],
  ])('that throws %s is retried with a reason that does not contain it', async (_name, thrown) => {
    const failing = (): never => {
      throw thrown;
    };
    const { push, errors, calls } = runnerFor(failing);
    const answer = await push();
    expect(errorOf(answer)).toEqual([500, 'handler_failed']);
    expect(textOf(answer)).not.toContain('hunter2');
    expect(errors).toMatchObject([{ code: 'handler_failed', cause: thrown, call: { callId: 7 } }]);
    expect(calls).toMatchObject([{ outcome: 'retry', code: 'handler_failed' }]);
  });

  test('requests a retry at a chosen time with RetryLater', async () => {
    const { push, errors } = runnerFor(() => {
      throw new RetryLater('the model is loading', { afterSecs: 29.5 });
    });
    const answer = await push();
    expect(errorOf(answer)).toEqual([429, 'retry_later']);
    expect(answer.headers['retry-after']).toBe('30');
    expect(textOf(answer)).toContain('the model is loading');
    expect(errors).toEqual([]);
  });

  test('makes its call a dead letter with Refuse', async () => {
    const { push, calls } = runnerFor(async () => {
      throw new Refuse('no such picture');
    });
    const answer = await push();
    expect(errorOf(answer)).toEqual([422, 'refused']);
    expect(textOf(answer)).toContain('no such picture');
    expect(calls).toMatchObject([{ outcome: 'refused', code: 'refused', message: 'no such picture' }]);
  });

  test('that hangs is aborted and its call retried, and other calls run meanwhile', async () => {
    const reasons: unknown[] = [];
    const never = new Promise<void>(() => {});
    const { push, errors } = runnerFor(
      ({ callId, signal }) => {
        if (callId === 2) return 'done';
        signal.addEventListener('abort', () => reasons.push(signal.reason));
        return never;
      },
      { timeoutMs: 20, concurrency: 1 },
    );
    expect(errorOf(await push({ id: 1 }))).toEqual([504, 'handler_timeout']);
    expect(reasons).toMatchObject([{ name: 'TimeoutError' }]);
    expect((await push({ id: 2 })).status).toBe(200);
    expect(errors[0]).toMatchObject({ code: 'handler_timeout', call: { callId: 1 } });
    await eventually(() =>
      expect(errors.map(({ code }) => code)).toEqual(['handler_timeout', 'handler_stuck']),
    );
  });

  test('that always hangs runs only up to a bound of times', async () => {
    let started = 0;
    const { push } = runnerFor(
      () => {
        started += 1;
        return new Promise<void>(() => {});
      },
      { timeoutMs: 1, concurrency: 2 },
    );
    let full = 0;
    for (let id = 1; id <= 40; id += 1) full += (await push({ id })).status === 503 ? 1 : 0;
    expect([started, full]).toEqual([16, 24]);
  });

  test('that rejects after it was aborted causes no unhandled rejection', async () => {
    const { push, errors } = runnerFor(
      ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      { timeoutMs: 5 },
    );
    expect(errorOf(await push())).toEqual([504, 'handler_timeout']);
    expect(errors.map(({ code }) => code)).toEqual(['handler_timeout']);
  });
});

describe('a call to a runner', () => {
  test('by a trigger without a handler is refused, and reported to onError', async () => {
    const ran: string[] = [];
    const { push, errors } = runnerOf({
      jobs: [job({ serviceId: 1, jobIndex: 0, on: { cron: () => void ran.push('cron') } })],
    });
    const answer = await push();
    expect(errorOf(answer)).toEqual([403, 'trigger_not_wired']);
    expect(textOf(answer)).toContain('job 1/0 is not wired for calls by x402, only for: cron');
    expect(errors).toMatchObject([{ code: 'trigger_not_wired', call: { serviceId: 1, trigger: 'x402' } }]);
    expect(ran).toEqual([]);
    expect((await push({ trigger: 'cron' })).status).toBe(204);
    expect(ran).toEqual(['cron']);
    expect(errorOf(await push({ trigger: 'webhook' }))).toEqual([403, 'trigger_not_wired']);
    // a trigger of a later gateway
    expect(errorOf(await push({ trigger: 'queue' }))).toEqual([403, 'trigger_not_wired']);
    // names that every object has are no triggers
    expect((await push({ trigger: 'constructor' })).status).toBe(403);
  });

  test('of a job that the runner does not have is refused, and reported to onError', async () => {
    const { push, errors } = runnerFor(() => 'x');
    expect(errorOf(await push({ jobIndex: 1 }))).toEqual([404, 'job_unknown']);
    expect(errorOf(await push({ serviceId: 2 }))).toEqual([404, 'job_unknown']);
    expect(errors.map(({ message }) => message)).toEqual([
      'call 7: this runner has no job 1/1',
      'call 7: this runner has no job 2/0',
    ]);
  });

  test('is run by the handler of its job', async () => {
    const { push } = runnerOf({
      jobs: [
        job({ serviceId: 1, jobIndex: 0, on: { x402: () => 'one' } }),
        job({ serviceId: 1, jobIndex: 1, on: { x402: () => 'two' } }),
      ],
    });
    expect(textOf(await push({ jobIndex: 1 }))).toBe('two');
  });

  test('that is delivered again while it runs shares the result of that run', async () => {
    const { open, opened } = gate();
    const attempts: number[] = [];
    const { push } = runnerFor(async ({ attempt }) => {
      attempts.push(attempt);
      await opened;
      return `run ${attempts.length}`;
    });
    const twins = [push({ attempt: 1 }), push({ attempt: 2 }), push({ attempt: 3 })];
    open();
    expect((await Promise.all(twins)).map(textOf)).toEqual(['run 1', 'run 1', 'run 1']);
    expect(textOf(await push({ attempt: 4 }))).toBe('run 2');
    expect(attempts).toEqual([1, 4]);
  });

  test('beyond the concurrency of its job or of the runner is refused with 503 and Retry-After', async () => {
    const { open, opened } = gate();
    const wait = async (): Promise<void> => opened;
    const { push, errors } = runnerOf({
      concurrency: 2,
      jobs: [
        job({ serviceId: 1, jobIndex: 0, on: { x402: wait }, concurrency: 1 }),
        job({ serviceId: 1, jobIndex: 1, on: { x402: wait } }),
      ],
    });
    const first = push({ id: 1 });
    const ofTheJob = await push({ id: 2 });
    expect([...(errorOf(ofTheJob) as unknown[]), ofTheJob.headers['retry-after']]).toEqual([
      503,
      'runner_full',
      '1',
    ]);
    const second = push({ id: 3, jobIndex: 1 });
    expect(errorOf(await push({ id: 4, jobIndex: 1 }))).toEqual([503, 'runner_full']);
    open();
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([204, 204]);
    expect((await push({ id: 2 })).status).toBe(204);
    expect(errors).toEqual([]);
  });
});

describe('the typed input of a call', () => {
  const input = z.object({ n: z.int(), of: z.string().default('it') });
  const doubling = job({
    serviceId: 1,
    jobIndex: 0,
    input,
    on: { x402: (call) => ({ twice: call.input.n * 2, of: call.input.of.toUpperCase() }) },
  });

  test('is the parsed and validated body', async () => {
    const answer = await runnerOf({ jobs: [doubling] }).push({ body: '{"n":21}' });
    expect(textOf(answer)).toBe('{"twice":42,"of":"IT"}');
  });

  test.each([
    ['another type', '{"n":"21"}', 'n: '],
    ['no JSON', '{"n":', 'not JSON'],
    ['no UTF-8', Buffer.of(0x22, 0xff, 0x22), 'not JSON'],
    ['no body', '', 'not JSON'],
  ])('that is %s makes the call a dead letter without running the handler', async (_name, body, expected) => {
    const { push, errors } = runnerOf({ jobs: [doubling] });
    const answer = await push({ body });
    expect(errorOf(answer)).toEqual([422, 'input_invalid']);
    expect(textOf(answer)).toContain(expected);
    expect(errors).toMatchObject([{ code: 'input_invalid' }]);
  });

  test('that is refused has a short message, however long its keys are', async () => {
    const strict = job({ serviceId: 1, jobIndex: 0, input: z.strictObject({}), on: { x402: () => 1 } });
    const answer = await runnerOf({ jobs: [strict] }).push({
      body: JSON.stringify({ ['k'.repeat(9_000)]: 1 }),
    });
    expect([answer.status, answer.body.length < 1_000]).toEqual([422, true]);
  });

  test('can be validated asynchronously', async () => {
    const checked = input.refine(async ({ n }) => n > 0, 'must be positive');
    const { push } = runnerOf({
      jobs: [job({ serviceId: 1, jobIndex: 0, input: checked, on: { x402: ({ input: { n } }) => n } })],
    });
    expect((await push({ body: '{"n":1}' })).status).toBe(200);
    expect(textOf(await push({ body: '{"n":0}' }))).toContain('must be positive');
  });
});

describe('the creation of a runner', () => {
  const on = { x402: () => 'x' };
  test.each<[string, () => unknown, string]>([
    ['no job', () => createRunner({ jobs: [] }), 'without a job'],
    [
      'the same job twice',
      () => runnerOf({ jobs: [1, 2].map(() => job({ serviceId: 1, jobIndex: 0, on })) }),
      '1/0 is there twice',
    ],
    ['no handler', () => job({ serviceId: 1, jobIndex: 0, on: {} }), 'no handler'],
    // @ts-expect-error -- the types know the triggers; JavaScript does not
    ['a misspelt trigger', () => job({ serviceId: 1, jobIndex: 0, on: { X402: () => 1 } }), 'on.X402'],
    ['an index that is not whole', () => job({ serviceId: 1, jobIndex: 0.5, on }), 'jobIndex'],
    [
      'a concurrency of zero',
      () => createRunner({ jobs: [job({ serviceId: 1, jobIndex: 0, on })], concurrency: 0 }),
      'concurrency',
    ],
    [
      'a time limit out of range',
      () => job({ serviceId: 1, jobIndex: 0, on, timeoutMs: 2 ** 31 }),
      'timeoutMs',
    ],
  ])('with %s throws a TypeError', (_name, make, expected) => {
    expect(make).toThrow(TypeError);
    expect(make).toThrow(expected);
  });

  test('does not mind what its hooks throw', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): number => unhandled.push(reason);
    process.on('unhandledRejection', note);
    const { push } = runnerFor(() => 'x', {
      onCall: () => {
        throw new Error('log');
      },
      onError: () => Promise.reject(new Error('log')),
    });
    expect((await push()).status).toBe(200);
    expect((await push({ jobIndex: 9 })).status).toBe(404);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

describe('a fault of the runner itself', () => {
  test.each([
    ['a call that is pushed', 1],
    ['each of many calls that are pushed', 40],
  ])('of %s frees its slot, is reported, and has the call delivered again', async (_what, times) => {
    const errors: RunnerError[] = [];
    const work = job({ serviceId: 1, jobIndex: 0, on: { x402: () => 'done' } });
    let isFaulty = true;
    const faulty = new Proxy(work, {
      get(target, name, receiver) {
        if (isFaulty && name === 'timeoutMs') throw new Error('a Node that lacks something');
        return Reflect.get(target, name, receiver) as unknown;
      },
    });
    const { push } = runnerOf({ jobs: [faulty], concurrency: 2, onError: (error) => errors.push(error) });
    for (let id = 1; id <= times; id++) expect(errorOf(await push({ id }))).toEqual([500, 'runner_failed']);
    expect(errors).toHaveLength(times);
    expect(errors[0]).toMatchObject({
      code: 'runner_failed',
      cause: { message: 'a Node that lacks something' },
    });
    isFaulty = false;
    expect((await push({ id: 100 })).status).toBe(200);
  });
});
