import { expect, test } from 'vitest';
import { useChain } from '../../support/devnet.ts';
import {
  payTo,
  startTestGateway,
  type TestGatewayOptions,
  startWithDatabase,
} from '../../support/gateway.ts';
import { allEvents } from '../../support/invariants.ts';
import { header, offerOf, signOffer } from '../../support/payer.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const schema = {
  type: 'object',
  properties: { prompt: { type: 'string', maxLength: 20 }, steps: { type: 'integer', minimum: 1 } },
  required: ['prompt'],
  additionalProperties: false,
};

async function start(tables = '', keyed: Partial<TestGatewayOptions> = {}) {
  const { database, gateway } = await startWithDatabase({
    chain,
    isDocumented: true,
    jobs: `[job_prices.1]
0 = "1000000000000000"
1 = "1"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
input_schema_file = "prompt.json"
[[job_policies]]
service_id = 1
job_index = 1
invocation_mode = "public_paid"
content_type = "Image/PNG"`,
    files: { 'prompt.json': JSON.stringify(schema) },
    tables,
    ...keyed,
  });
  return { database, gateway };
}

const json = { 'content-type': 'application/json; charset=utf-8' };
const good = JSON.stringify({ prompt: 'a cat', steps: 3 });

test('a body that is not what the schema describes is 422 before any money moves, and its answer says what is wrong', async () => {
  const { database, gateway } = await start();
  const before = await chain.balance(payTo);
  const wrong = [
    ['prompt=a cat', ['the body is not JSON in UTF-8 without a byte order mark']],
    ['', ['the body is not JSON in UTF-8 without a byte order mark']],
    ['{}', ["the body must have required property 'prompt'"]],
    ['{"prompt":7}', ['/prompt must be string']],
    ['{"prompt":7,"steps":0}', ['/prompt must be string', '/steps must be >= 1']],
    ['{"prompt":"x","more":1}', ['the body must NOT have additional properties']],
  ] as const;
  for (const [body, details] of wrong) {
    const offer = offerOf(await gateway.post(job, { body: good, headers: json }));
    const paid = await gateway.post(job, { body, headers: { ...json, ...header(await signOffer(offer)) } });
    expect([body, paid]).toMatchObject([body, { status: 422, json: { code: 'input_invalid', details } }]);
    const unpaid = body === '' || body === '{}' ? 402 : 422;
    expect([body, (await gateway.post(job, { body, headers: json })).status]).toEqual([body, unpaid]);
  }
  expect(await chain.balance(payTo)).toBe(before);
  const refused = (await allEvents(database.db)).filter(({ type }) => type === 'request_refused');
  expect(refused).toHaveLength(2 * wrong.length - 2);
});

test('a crawler gets the offer of a job with input rules: it sends no payment and no body, or {}, of any content type', async () => {
  const { database, gateway } = await start();
  const before = await chain.balance(payTo);
  const text = { 'content-type': 'text/plain' };
  const attempts = [
    {},
    { headers: json },
    { body: '' },
    { body: '{}', headers: json },
    { body: ' {\n}\n', headers: json },
    { body: '{}', headers: text },
  ];
  for (const attempt of attempts)
    for (const path of [job, '/x402/jobs/1/1']) {
      const asked = await gateway.post(path, attempt);
      expect([path, attempt, asked.status]).toEqual([path, attempt, 402]);
      expect(offerOf(asked).accepts[0]?.extra).toMatchObject({ paymentFlow: 'upfront' });
      const paid = {
        ...attempt,
        headers: { ...attempt.headers, ...header(await signOffer(offerOf(asked))) },
      };
      expect([415, 422]).toContain((await gateway.post(path, paid)).status);
      const unreadable = { ...attempt, headers: { ...attempt.headers, 'payment-signature': 'e30=' } };
      expect([415, 422]).toContain((await gateway.post(path, unreadable)).status);
    }
  for (const body of ['[]', '{ "a": 1 }', 'null'])
    expect((await gateway.post(job, { body, headers: json })).status).toBe(422);
  for (const body of ['[]', `{${' '.repeat(2000)}}`])
    expect((await gateway.post(job, { body, headers: text })).status).toBe(415);
  expect(await chain.balance(payTo)).toBe(before);
  expect((await allEvents(database.db)).filter(({ type }) => type === 'settlement_started')).toEqual([]);
});

test('a body with a content encoding is 415 before any money moves: its runner would get the bytes without the header', async () => {
  const { database, gateway } = await start();
  const offer = offerOf(await gateway.post(job, { body: good, headers: json }));
  const encoded = { ...json, 'content-encoding': 'gzip' };
  const refused = {
    status: 415,
    json: { code: 'unsupported_media_type', details: [expect.stringContaining('Content-Encoding')] },
  };
  expect(await gateway.post(job, { body: good, headers: encoded })).toMatchObject(refused);
  const payment = header(await signOffer(offer));
  expect(await gateway.post(job, { body: good, headers: { ...encoded, ...payment } })).toMatchObject(refused);
  expect((await allEvents(database.db)).filter(({ type }) => type === 'settlement_started')).toEqual([]);
  const plain = { ...json, 'content-encoding': 'Identity', ...payment };
  expect((await gateway.post(job, { body: good, headers: plain })).status).toBe(202);
});

test('valid input is paid for, and the 402 and the price describe the expected input', async () => {
  const { gateway } = await start();
  const asked = await gateway.post(job, { body: good, headers: json });
  const expected = { content_type: 'application/json', json_schema: schema };
  expect(asked.json.input).toEqual(expected);
  expect((await gateway.get(`${job}/price`)).json.input).toEqual(expected);
  const headers = { ...json, ...header(await signOffer(offerOf(asked))) };
  expect((await gateway.post(job, { body: good, headers })).status).toBe(202);
});

test('a known payment gets its own outcome although its body is no longer valid input', async () => {
  const { database, gateway } = await start();
  const offer = offerOf(await gateway.post(job, { body: good, headers: json }));
  const headers = { ...json, ...header(await signOffer(offer)) };
  expect((await gateway.post(job, { body: good, headers })).status).toBe(202);
  const stricter = await startTestGateway({
    database,
    chain,
    jobs: '[job_prices.1]\n0 = "1"\n[[job_policies]]\nservice_id = 1\njob_index = 0\ninvocation_mode = "public_paid"\ncontent_type = "image/png"',
  });
  expect((await stricter.post(job, { body: good, headers })).status).toBe(202);
});

test('a long body that does not fit its job counts as several requests: its check costs as much', async () => {
  const { gateway } = await start('[limits]\nrequests_per_minute = 20');
  const statusOf = async (body: string, address: string): Promise<number> =>
    (await gateway.post(job, { body, headers: { ...json, 'x-forwarded-for': address } })).status;
  const long = JSON.stringify({ prompt: 7, more: 'x'.repeat(160_000) });
  const statuses = [];
  for (let count = 0; count < 3; count++) statuses.push(await statusOf(long, '198.51.100.21'));
  expect(statuses).toEqual([422, 422, 429]);
  for (let count = 0; count < 20; count++) expect(await statusOf('{"prompt":8}', '198.51.100.22')).toBe(422);
  expect(await statusOf(good, '198.51.100.22')).toBe(429);
});

test('a long body that does not fit its job is checked and counted once, also if a payment comes with it', async () => {
  const { gateway } = await start('[limits]\nrequests_per_minute = 10', {
    top: 'quote_key = "env:QUOTE_KEY"\npublic_url = "http://jobs.example"',
    env: { QUOTE_KEY: 'the-key-of-quotes-of-the-test-gateway' },
  });
  const offer = offerOf(await gateway.post(job, { body: good, headers: json }));
  const headers = { ...json, ...header(await signOffer(offer)), 'x-forwarded-for': '198.51.100.31' };
  const body = JSON.stringify({ prompt: 7, more: 'x'.repeat(100_000) });
  const statuses = [];
  for (let count = 0; count < 3; count++) statuses.push((await gateway.post(job, { body, headers })).status);
  expect(statuses).toEqual([422, 422, 429]);
});
