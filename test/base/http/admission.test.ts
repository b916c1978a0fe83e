import fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { admitInTurn } from '../../../src/base/http/admission.ts';

/** How long the main thread works on each request. */
const workMs = 3;

/** An app that keeps the main thread busy with each request, and notes the order in which requests were begun. */
async function serve() {
  const app = fastify();
  const begun: string[] = [];
  admitInTurn(app, (url) => url === '/exempt');
  app.get('/*', async ({ ip, url }) => {
    begun.push(url === '/exempt' ? url : ip);
    const untilMs = performance.now() + workMs;
    while (performance.now() < untilMs);
    return '';
  });
  await app.ready();
  onTestFinished(() => app.close());
  const ask = (remoteAddress: string, count = 1, more: { url?: string; signal?: AbortSignal } = {}) =>
    Promise.allSettled(Array.from({ length: count }, () => app.inject({ url: '/', remoteAddress, ...more })));
  return { begun, ask };
}

test('of simultaneous requests one of each client is begun in turn, however many wait for each', async () => {
  const { begun, ask } = await serve();
  await Promise.all([ask('10.0.0.1', 60), ask('10.0.0.2', 10), ask('10.0.0.3', 10)]);
  const lastOfFew = Math.max(begun.lastIndexOf('10.0.0.2'), begun.lastIndexOf('10.0.0.3'));
  // the first few were begun before any had to wait
  expect(lastOfFew).toBeLessThan(40);
  expect(begun).toHaveLength(80);
});

test('a client with waiting requests does not delay the later request of another one', async () => {
  const { begun, ask } = await serve();
  const flood = ask('10.0.0.1', 60);
  await new Promise(setImmediate);
  await ask('10.0.0.2');
  expect(begun.length).toBeLessThan(20);
  await flood;
});

test('a request that is exempt does not wait', async () => {
  const { begun, ask } = await serve();
  await Promise.all([ask('10.0.0.1', 60), ask('10.0.0.1', 1, { url: '/exempt' })]);
  expect(begun.indexOf('/exempt')).toBeLessThan(20);
});

test('a client that has left takes no turn', async () => {
  const { begun, ask } = await serve();
  const leaves = new AbortController();
  const left = ask('10.0.0.1', 60, { signal: leaves.signal });
  await new Promise(setImmediate);
  leaves.abort();
  await Promise.all([left, ask('10.0.0.2', 10)]);
  expect(begun.filter((client) => client === '10.0.0.2')).toHaveLength(10);
  expect(begun.length).toBeLessThan(40);
});
