import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createUpstreams } from '../../../src/jobs/peers/upstream.ts';
import { listening } from '../../support/listening.ts';

test('an answer that begins just after its time limit is dropped, and ends neither the process nor the next exchange', async () => {
  const asked: { readonly response: ServerResponse; readonly closed: Promise<unknown> }[] = [];
  const url = await listening(
    createServer((_request, response) => {
      if (asked.push({ response, closed: once(response, 'close') }) > 1) response.end('in time');
    }),
  );
  const upstreams = createUpstreams();
  onTestFinished(() => upstreams.close());
  // undici's own timers beyond a second come up to half a second late
  const { signal } = new AbortController();
  const exchange = { method: 'GET', target: '/', headers: [], body: Buffer.alloc(0), signal };
  const ask = (timeoutMs: number) => upstreams.of(url).request({ ...exchange, timeoutMs });
  expect(await ask(1_050)).toMatchObject({ kind: 'failed', reason: 'upstream_timeout' });
  asked[0]!.response.end('late');
  await asked[0]!.closed;
  const next = await ask(60_000);
  if (next.kind === 'failed') throw new Error(next.reason);
  expect(Buffer.concat(await next.body.toArray()).toString()).toBe('in time');
});
