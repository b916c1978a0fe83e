import { once } from 'node:events';
import { createServer, request as startRequest } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test, onTestFinished } from 'vitest';
import {
  createRunner,
  type Handler,
  job,
  type ListenOptions,
  type Runner,
  type RunnerError,
  signCall,
} from '../../src/runner/index.ts';
import { soonMs } from '../support/time-limits.ts';
import { eventually } from '../support/wait.ts';
import { gate, keyOf, post, pushed, secret } from './support.ts';

async function listening(
  handler: Handler,
  options: Partial<ListenOptions> = {},
): Promise<{ runner: Runner; url: string; errors: RunnerError[]; ran: () => number }> {
  const errors: RunnerError[] = [];
  let ran = 0;
  const counted: Handler = (call) => {
    ran += 1;
    return handler(call);
  };
  const runner = createRunner({
    jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: counted } })],
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => runner.stop({ graceMs: 0 }));
  const { url } = await runner.listen({ secret, ...options });
  return { runner, url, errors, ran: () => ran };
}

/** A server as an author might have one already. */
async function ownServer(runner: Runner): Promise<{ url: string; taken: () => number }> {
  let taken = 0;
  const server = createServer((request, response) => {
    void (async () => {
      const body = Buffer.concat((await request.toArray()) as Buffer[]);
      const answering = runner.handle({ headers: request.headers, body }, { secret });
      taken += 1;
      const answer = await answering;
      response.writeHead(answer.status, answer.headers).end(answer.body);
    })();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => server.close().closeAllConnections());
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return { url: `http://127.0.0.1:${port}/`, taken: () => taken };
}

describe('a pushed call', () => {
  test('is run, and answered with its result', async () => {
    const { url } = await listening(({ body }) => `got ${body.toString()}`);
    const response = await post(`${url}/any/path?at=all`, pushed({ body: 'this' }));
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      200,
      'text/plain; charset=utf-8',
      'got this',
    ]);
  });

  test('gives its handler the span that it came with, and omits an invalid one', async () => {
    const span = `00-${'4b'.repeat(16)}-${'5c'.repeat(8)}-01`;
    const { url } = await listening(({ traceparent }) => String(traceparent));
    for (const [id, traceparent, given] of [
      [1, span, span],
      [2, 'none', 'undefined'],
    ] as const) {
      const call = pushed({ id });
      const response = await post(url, { ...call, headers: { ...call.headers, traceparent } });
      expect(await response.text()).toBe(given);
    }
  });

  const good = pushed();
  test.each<[string, ReturnType<typeof pushed>, string]>([
    ['another body', { ...good, body: Buffer.from('other text') }, 'body_signature_mismatch'],
    [
      'other metadata',
      { ...good, headers: { ...good.headers, 'x-net-job-index': '1' } },
      'metadata_signature_mismatch',
    ],
  ])(
    'with %s is refused with 401 without being run, and reported to onError',
    async (_name, call, reason) => {
      const { url, errors, ran } = await listening(() => 'never');
      const response = await post(url, call);
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ code: reason });
      expect(errors).toMatchObject([
        { code: 'signature_refused', message: expect.stringContaining(reason) as string },
      ]);
      expect(ran()).toBe(0);
    },
  );

  test('that is signed but lacks required metadata is refused', async () => {
    const { url, errors } = await listening(() => 'never');
    const metadata = { 'x-x402-origin': 'x402', 'x-net-call-id': '7' };
    const body = Buffer.from('x');
    const signature = signCall({
      secret,
      id: keyOf(7),
      timestampSecs: Math.floor(Date.now() / 1_000),
      body,
      metadata,
    });
    const response = await post(url, { headers: { ...metadata, ...signature }, body });
    expect([response.status, errors[0]?.code]).toEqual([400, 'call_malformed']);
  });

  test('whose client disconnects keeps running, and the next delivery gets its result', async () => {
    const { open, opened } = gate();
    const { runner, ran } = await listening(async () => {
      await opened;
      return 'the result';
    });
    const { url, taken } = await ownServer(runner);
    const impatient = new AbortController();
    const { headers, body } = pushed();
    const first = fetch(url, {
      method: 'POST',
      headers,
      body: new Uint8Array(body),
      signal: impatient.signal,
    });
    first.catch(() => {});
    await eventually(() => expect(taken()).toBe(1));
    impatient.abort();
    const second = post(url, pushed({ attempt: 2 }));
    await eventually(() => expect(taken()).toBe(2));
    open();
    expect(await (await second).text()).toBe('the result');
    expect(ran()).toBe(1);
  });
});

describe('the endpoint of a push runner', () => {
  test('accepts only POST, on its path if it has one', async () => {
    const { url, errors } = await listening(() => 'ok', { path: '/calls' });
    expect((await post(`${url}/calls?x=1`, pushed())).status).toBe(200);
    expect((await post(`${url}/other`, pushed())).status).toBe(404);
    expect((await fetch(`${url}/calls`)).status).toBe(405);
    expect(errors.map(({ code }) => code)).toEqual(['request_refused', 'request_refused']);
  });

  test('accepts bodies up to its maximum size', async () => {
    const { url, errors, ran } = await listening(({ body }) => body.length, { maxBodyBytes: 1_000 });
    expect(await (await post(url, pushed({ body: 'x'.repeat(1_000) }))).text()).toBe('1000');
    const response = await post(url, pushed({ body: 'x'.repeat(100_000) }));
    expect([response.status, errors[0]?.code, ran()]).toEqual([413, 'request_refused', 1]);
  });

  test('keeps serving after a client disconnects during its request', async () => {
    const { url, ran } = await listening(() => 'ok');
    const request = startRequest(url, {
      method: 'POST',
      headers: { ...pushed().headers, 'content-length': '9' },
    });
    request.on('error', () => {});
    request.write('some');
    await once(request, 'socket');
    request.destroy();
    expect((await post(url, pushed({ id: 8 }))).status).toBe(200);
    expect(ran()).toBe(1);
  });

  test('rejects when its address is taken', async () => {
    const { url } = await listening(() => 'ok');
    const { runner } = await listening(() => 'ok');
    await expect(runner.listen({ secret, port: Number(new URL(url).port) })).rejects.toThrow('EADDRINUSE');
  });

  test('requires a secret', async () => {
    const { runner } = await listening(() => 'ok');
    await expect(runner.listen({ secret: '' })).rejects.toThrow('secret');
  });
});

describe('a runner that is stopped', () => {
  test('finishes the running calls, accepts no new ones, and closes its port', async () => {
    const { open, opened } = gate();
    const { runner, url, ran } = await listening(async () => {
      await opened;
      return 'finished';
    });
    const running = post(url, pushed({ id: 1 }));
    await eventually(() => expect(ran()).toBe(1));
    const stopped = runner.stop();
    expect((await runner.handle(pushed({ id: 2 }), { secret })).status).toBe(503);
    // the call that runs already may still be joined
    const joined = runner.handle(pushed({ id: 1, attempt: 2 }), { secret });
    open();
    expect(await (await running).text()).toBe('finished');
    expect((await joined).status).toBe(200);
    await stopped;
    await expect(post(url, pushed({ id: 3 }))).rejects.toThrow('fetch failed');
    expect(ran()).toBe(1);
    await expect(runner.listen({ secret })).rejects.toThrow('stopped');
  });

  test('aborts and gives back the calls that do not end in time', async () => {
    let aborted = false;
    const { runner, url, ran } = await listening(({ signal }) => {
      signal.addEventListener('abort', () => (aborted = true));
      return new Promise<void>(() => {});
    });
    const running = post(url, pushed());
    await eventually(() => expect(ran()).toBe(1));
    await Promise.all([runner.stop({ graceMs: 1 }), runner.stop()]);
    const response = await running;
    expect([response.status, await response.json()]).toMatchObject([503, { code: 'runner_stopping' }]);
    expect(aborted).toBe(true);
  });

  test('does not wait for idle connections', async () => {
    const { runner, url } = await listening(() => 'ok');
    const silent = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void silent.destroy());
    await once(silent, 'connect');
    expect((await post(url, pushed())).status).toBe(200);
    const ended = once(silent, 'close');
    silent.on('error', () => {});
    const startedAt = performance.now();
    await runner.stop({ graceMs: 200_000 });
    await ended;
    expect(performance.now() - startedAt).toBeLessThan(soonMs(1_000));
  });

  test('can be stopped by a signal', async () => {
    const stop = new AbortController();
    const runner = createRunner({
      jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: () => 'x' } })],
      signal: stop.signal,
    });
    const { url } = await runner.listen({ secret });
    expect((await post(url, pushed())).status).toBe(200);
    stop.abort();
    await runner.stop();
    await expect(post(url, pushed())).rejects.toThrow('fetch failed');
  });
});
