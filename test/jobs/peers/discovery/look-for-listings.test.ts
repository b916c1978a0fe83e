import { withBazaar } from '@x402/extensions/bazaar';
import { HTTPFacilitatorClient } from '@x402/core/http';
import { expect, test } from 'vitest';
import { lookForListings, type LookTerms } from '../../../../src/jobs/peers/discovery/look-for-listings.ts';
import {
  listedItem,
  otherItems,
  startDiscoveryService,
  type TestDiscoveryService,
} from '../../../support/discovery-service.ts';
import { soonMs } from '../../../support/time-limits.ts';

const payTo = '0x90f79bf6eb2c4f870365e785982e1f101e93b906';
const [first, second] = ['https://shop.example/x402/jobs/1/0', 'https://shop.example/x402/jobs/1/1'];
const ours = [first, second].map((resource) => ({ resource, payTo }));

function lookAt(service: TestDiscoveryService, terms: Partial<LookTerms> = {}, signal?: AbortSignal) {
  const usual = { payees: [payTo], wanted: new Set([first, second]), known: new Set<string>() };
  const limits = { maxPages: 20, timeoutMs: 20_000, lookTimeoutMs: 60_000 };
  return lookForListings(
    { url: service.url, ...usual, ...limits, ...terms },
    signal ?? new AbortController().signal,
  );
}

/** What a look found, in one line. */
async function found(...given: Parameters<typeof lookAt>): Promise<string> {
  const { look } = await lookAt(...given);
  if (look === 'stopped') return look;
  const end = look.kind === 'unknown' ? `unknown ${look.problem}` : look.kind;
  const others = look.otherPayee.size > 0 ? `, ${look.otherPayee.size} by another payee` : '';
  return `${end}: ${look.listed.size}${others}`;
}

test('the service of the tests is one that the official client reads', async () => {
  const service = await startDiscoveryService([...otherItems(3), ...ours]);
  const client = withBazaar(new HTTPFacilitatorClient({ url: service.url }));
  const answer = await client.extensions.bazaar.listResources({ limit: 10, offset: 3 });
  expect(answer).toMatchObject({
    x402Version: 2,
    items: ours.map(listedItem),
    pagination: { offset: 3, total: 5 },
  });
});

test.each(['merchant', 'resources'] as const)(
  'a service that lists by payee (%s) shows in few pages that all is as it was, however long its list is',
  async (byPayee) => {
    const service = await startDiscoveryService([...otherItems(900), ...ours]);
    service.byPayee = byPayee;
    expect(await found(service)).toBe('conclusive: 2');
    expect(service.asked).toHaveLength(byPayee === 'merchant' ? 1 : 2);
    // a job that was never paid for is not listed: it does not make every look read the whole list
    service.asked.length = 0;
    const third = { wanted: new Set([first, second, `${first}0`]), known: new Set([first, second]) };
    expect(await found(service, third)).toBe('conclusive: 2');
    expect(service.asked).toHaveLength(byPayee === 'merchant' ? 1 : 2);
  },
);

test('a list by payee proves what is listed and never what is not: the whole list decides', async () => {
  const service = await startDiscoveryService([...otherItems(230), ...ours]);
  service.fault = ({ url = '' }, response) => {
    if (!url.includes('payTo')) {
      service.fault = undefined;
      return void response.writeHead(302, { location: url }).end();
    }
    response.end('{"x402Version":2,"items":[],"pagination":{"limit":100,"offset":0,"total":0}}');
  };
  expect(await found(service)).toBe('unknown status_302: 0');
  service.byPayee = 'ignored';
  expect(await found(service)).toBe('conclusive: 2');
});

test.each([
  ['empty', true, 100],
  ['empty', false, 100],
  ['last_page', true, 100],
  ['refused', true, 100],
  ['empty', true, 20],
  ['empty', true, 1_000],
] as const)(
  'what the whole list does not have is not listed (behind its end: %s, with a total: %s, pages of %i)',
  async (behindEnd, pagination, mostPerPage) => {
    const service = await startDiscoveryService([...otherItems(200), ours[0]!]);
    Object.assign(service, { behindEnd, pagination, mostPerPage, byPayee: 'ignored' });
    expect(await found(service)).toBe('conclusive: 1');
    service.items = otherItems(200);
    expect(await found(service)).toBe('conclusive: 0');
  },
);

test('a listing with the payees of others alone is not ours, and an address is ours however it is written', async () => {
  const foreign = { resource: first, payTo: '0x0000000000000000000000000000000000000bad' };
  const written = { resource: 'https://SHOP.example:443/x402/jobs/1/1/?a=b', payTo: payTo.toUpperCase() };
  const service = await startDiscoveryService([...otherItems(3), foreign, written]);
  expect(await found(service)).toBe('conclusive: 1, 1 by another payee');
});

const answering =
  (body: string | Buffer, status = 200): TestDiscoveryService['fault'] =>
  (_, response) =>
    void response.writeHead(status, { 'content-type': 'text/html' }).end(body);

const pageOf = (items: readonly unknown[], total?: unknown): string =>
  JSON.stringify({ x402Version: 2, items, pagination: { limit: 100, offset: 0, total } });

test.each([
  ['HTML', answering('<!doctype html><p>Soon.</p>'), 'malformed'],
  ['no JSON', answering(Buffer.from([0xff, 0xfe])), 'malformed'],
  ['a list alone', answering('[]'), 'malformed'],
  ['items that are none', answering('{"items":[1,null,{"resource":7}]}'), 'malformed'],
  ['nesting without end', answering('['.repeat(2_000_000)), 'too_large'],
  ['millions of values', answering(`{"items":[${'{},'.repeat(1_000_000)}{}]}`), 'too_large'],
  ['nothing listed at all', answering(pageOf([], 0)), 'empty'],
  ['nothing on the first page', answering(pageOf([], 500)), 'empty'],
  ['the same page again and again', answering(pageOf(otherItems(100).map(listedItem), 900)), 'repeated_page'],
  ['a page that is too long', answering(' '.repeat(5_000_000)), 'too_large'],
  ['an error', answering('no', 503), 'status_503'],
  ['a refusal', answering('no', 403), 'status_403'],
  ['a closed connection', (request) => void request.socket.destroy(), 'unreachable'],
  ['no answer', () => {}, 'timeout'],
  ['an answer that never ends', (_, response) => void response.writeHead(200).write('{"items":['), 'timeout'],
  [
    'a list without end',
    ({ url = '' }, response) =>
      void response.end(
        pageOf(
          otherItems(1_000)
            .slice(0, 3 + (url.length % 5))
            .map((item) => listedItem({ ...item, resource: `${item.resource}${url}` })),
        ),
      ),
    'too_many_pages',
  ],
  [
    'a slow list without end',
    ({ url = '' }, response) =>
      void setTimeout(
        () => response.end(pageOf([listedItem({ resource: `https://a.example${url}` })], 1e9)),
        60,
      ),
    'too_slow',
  ],
] satisfies [string, TestDiscoveryService['fault'], string][])(
  'a service that answers %s says nothing about what it does not list',
  async (_, fault, problem) => {
    const service = await startDiscoveryService();
    service.fault = fault;
    const limits = {
      ...(problem === 'timeout' && { timeoutMs: 200 }),
      ...(problem === 'too_slow' && { lookTimeoutMs: 300 }),
    };
    const answer = await found(service, limits);
    // the deadline of the look ends a page or comes between two
    expect(problem === 'too_slow' ? answer.replace('timeout', 'too_slow') : answer).toBe(
      `unknown ${problem}: 0`,
    );
    expect(service.asked.length).toBeLessThanOrEqual(20);
  },
);

test('a list that ends before its own total says nothing about what it does not list, and what it showed is listed', async () => {
  const service = await startDiscoveryService();
  const page = pageOf([listedItem(ours[0]!), ...otherItems(99).map(listedItem)], 5_000);
  service.fault = ({ url = '' }, response) =>
    void response.end(url.includes('offset=0') ? page : pageOf([], 5_000));
  expect(await found(service)).toBe('unknown incomplete: 1');
});

test('a service that asks to be left alone is, for as long as it says', async () => {
  const service = await startDiscoveryService();
  service.fault = (_, response) => void response.writeHead(429, { 'retry-after': '120' }).end();
  expect(await lookAt(service)).toMatchObject({
    look: { kind: 'unknown', problem: 'status_429' },
    retryAfterMs: 120_000,
  });
  expect(service.asked).toHaveLength(1);
});

test('a look under way ends immediately where the gateway stops', async () => {
  const service = await startDiscoveryService();
  const stopping = new AbortController();
  service.fault = () => stopping.abort();
  const startedAt = performance.now();
  expect(await found(service, { timeoutMs: 120_000, lookTimeoutMs: 120_000 }, stopping.signal)).toBe(
    'stopped',
  );
  expect(performance.now() - startedAt).toBeLessThan(soonMs(0));
});
