import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { refusals } from '../../../src/base/errors/refusal.ts';
import { useBrowser, hasBrowser } from '../../support/browser.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { header, offerOf, signOffer } from '../../support/payer.ts';
import { ask as question, freeModel, startChatGateway } from '../../support/chat-gateway.ts';
import { listening } from '../../support/listening.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const origin = { origin: 'https://shop.example' };
const start = async () => startTestGateway({ database: await createDatabase(), chain });

function preflight(url: string, headers: string): Promise<Response> {
  return fetch(url, {
    method: 'OPTIONS',
    headers: {
      ...origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': headers,
    },
  });
}

test('a page of any origin may send the headers of payments, of callers and of caches', async () => {
  const gateway = await start();
  for (const names of [
    'content-type,payment-signature',
    'content-type,x-payment',
    'access-control-expose-headers,content-type,payment-signature',
    'authorization',
    'if-none-match',
    'traceparent,x-request-id',
    'accept-payment,idempotency-key',
    // a policy may order calls by any header
    '*',
    'x-net-caller,x-net-caller-expiry,x-net-caller-nonce,x-net-caller-sig',
  ]) {
    const answer = await preflight(gateway.url + job, names);
    expect([names, answer.status, await answer.text()]).toEqual([names, 204, '']);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST');
    expect(answer.headers.get('access-control-max-age')).toBe('86400');
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
    const allowed = answer.headers.get('access-control-allow-headers')?.toLowerCase().split(', ');
    for (const name of names.split(',')) expect(allowed).toContain(name);
  }
});

test('every answer below /x402 can be read by a page, refusals too', async () => {
  const gateway = await start();
  const answers = [
    await gateway.get('/x402/health', origin),
    await gateway.get(`${job}/price`, origin),
    await gateway.get('/x402/nowhere', origin),
    await gateway.get('/x402/jobs/%zz/0/price', origin),
    await gateway.post(job, { headers: origin }),
    await gateway.post('/x402/jobs/9/9', { headers: origin }),
    await gateway.post(job, { body: 'x'.repeat(1_100_000), headers: origin }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 404, 400, 402, 404, 413]);
  for (const { headers } of answers) {
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    expect(headers.get('access-control-expose-headers')).toMatch(
      /^PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Location, Retry-After,/,
    );
  }
});

test('no page of another origin may read the answers to runners and operators, the documentation, or what is not served', async () => {
  const gateway = await start();
  // /v1 is not served here
  for (const path of [
    '/runner/leases',
    '/operator/dead-letters',
    '/openapi.json',
    '/docs',
    '/x402x',
    '/v1/models',
  ]) {
    const asked = await preflight(gateway.url + path, 'authorization');
    const answer = await gateway.get(path, origin);
    expect([404, 405]).toContain(asked.status);
    const allowed = [asked, answer].map(({ headers }) => headers.get('access-control-allow-origin'));
    expect([path, ...allowed]).toEqual([path, null, null]);
  }
});

const chatCall = '/v1/chat/completions';

test('a page of any origin may send a key, a content type and a signature to a model', async () => {
  const gateway = await startChatGateway();
  for (const name of ['authorization', 'content-type', 'x-payment-signature']) {
    const answer = await preflight(gateway.url + chatCall, name);
    expect([name, answer.status, await answer.text()]).toEqual([name, 204, '']);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
    const allowed = answer.headers.get('access-control-allow-headers')?.toLowerCase().split(', ');
    expect(allowed).toContain(name);
  }
});

test('every answer below /v1 can be read by a page, with its limits, refusals too', async () => {
  const gateway = await startChatGateway();
  const answers = [
    await gateway.post(question('x', freeModel), origin),
    await gateway.post('{', origin),
    await gateway.get('/v1/models'),
    await gateway.get('/v1/nowhere'),
    await gateway.get('/v1/%zz'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 200, 404, 400]);
  for (const { headers } of answers) {
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    expect(headers.get('access-control-expose-headers')).toContain('X-Request-Id, X-RateLimit-Limit,');
  }
});

test('a path that cannot be decoded is refused with a documented code', async () => {
  const gateway = await start();
  const { status, json } = await gateway.get('/x402/receipts/%zz');
  expect(status).toBe(400);
  expect(json).toEqual({ error: refusals.invalid_request.sentence, code: 'invalid_request' });
});

const page = useBrowser();

/** An empty page of its own origin. */
async function openShop() {
  const shop = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>shop</title>');
  });
  const at = await listening(shop);
  const tab = await page.browser.newPage();
  onTestFinished(() => tab.close());
  await tab.goto(`${at}/`);
  return tab;
}

test.skipIf(!hasBrowser)('a page in a browser reads an offer, pays it and follows its receipt', async () => {
  const gateway = await start();
  const shop = await openShop();
  const ask = (headers: Record<string, string>) =>
    shop.evaluate(
      async ([url, more]) => {
        const answer = await fetch(url, {
          method: 'POST',
          body: 'from a page',
          headers: { 'content-type': 'text/plain;x=1', ...more },
        });
        const text = await answer.text();
        return { status: answer.status, headers: [...answer.headers], text, json: JSON.parse(text) };
      },
      [gateway.url + job, headers] as const,
    );
  const required = await ask({});
  expect(required.status).toBe(402);
  const offer = offerOf({ ...required, headers: new Headers(required.headers) });
  expect(offer.accepts[0]?.network).toBe('eip155:84532');
  // as @x402/fetch sends it
  const paid = await ask({
    ...header(await signOffer(offer)),
    'access-control-expose-headers': 'PAYMENT-RESPONSE,X-PAYMENT-RESPONSE',
  });
  expect(paid.status).toBe(202);
  const headers = new Headers(paid.headers);
  expect(headers.get('payment-response')).not.toBeNull();
  expect(headers.get('location')).toBe(`/x402/receipts/${paid.json.quote_digest}`);
  const receipt = await shop.evaluate(
    async ([url, token]) => (await fetch(url, { headers: { authorization: `Bearer ${token}` } })).json(),
    [paid.json.receipt_url as string, paid.json.receipt_token as string] as const,
  );
  expect(receipt).toMatchObject({ state: 'enqueued', result: null });
});
