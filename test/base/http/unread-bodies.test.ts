import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { startTestGateway, type TestGatewayOptions } from '../../support/gateway.ts';
import { oneModel } from '../../support/chat-gateway.ts';
import { identitySecret } from '../../support/identity.ts';
import { logLines } from '../../support/log-lines.ts';
import { sendHead } from '../../support/raw-request.ts';
import { eventually } from '../../support/wait.ts';

/** Peers that do not answer: nothing here asks them. */
const nowhere = 'http://127.0.0.1:1';
const chain = {
  rpcUrl: nowhere,
  facilitatorUrl: nowhere,
  token: `0x${'1'.repeat(40)}`,
  secondToken: `0x${'2'.repeat(40)}`,
} as const;

const everything: Partial<TestGatewayOptions> = {
  top: 'features = ["x402", "chat"]',
  tables: `${oneModel('http://127.0.0.1:1/v1')}
[identity]
secret = "env:IDENTITY_SECRET"
[[runners]]
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"`,
  env: { IDENTITY_SECRET: identitySecret },
};

async function start(options: Partial<TestGatewayOptions> = {}) {
  return startTestGateway({ database: await createDatabase(), chain, ...options });
}

const json = { 'content-type': 'application/json', 'content-length': 30_000 };

test('a request without valid credentials is refused before its body is read', async () => {
  const gateway = await start(everything);
  const answers = await Promise.all(
    [
      '/runner/leases',
      '/runner/calls/1/extend',
      '/runner/calls/1/complete',
      '/runner/calls/1/fail',
      '/operator/dead-letters/1/requeue',
      '/operator/keys',
      '/operator/keys/1/revoke',
      '/operator/accounts/one/grants',
      '/api/keys',
    ].map(async (path) => {
      const request = await sendHead(gateway.url, path, { ...json, authorization: 'Bearer x' });
      onTestFinished(() => void request.socket.destroy());
      return [path, await request.status()];
    }),
  );
  expect(answers.filter(([, status]) => status !== 401)).toEqual([]);
});

const soldJob = '/x402/jobs/1/0';
const post = { 'content-type': 'application/octet-stream', 'content-length': 500_000 };

/** Sends a head without its body, as often as it is called, until the test ends. */
async function headOf(url: string, path: string, headers: Record<string, string | number> = post) {
  const request = await sendHead(url, path, headers);
  onTestFinished(() => void request.socket.destroy());
  return request;
}

describe('a request for a job is refused by its headers, before its body is read', () => {
  const schemaJob = `
[job_prices.1]
0 = "1"
1 = "1"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
content_type = "application/json"`;

  test('where the job is unknown or disabled, or does not take its content type', async () => {
    const gateway = await start({ jobs: schemaJob });
    for (const [name, path, status, headers] of [
      ['an unknown job', '/x402/jobs/7/7', 404, {}],
      ['an unknown job of a dry run', '/x402/jobs/7/7/auth-dry-run', 404, {}],
      ['a disabled job', '/x402/jobs/1/1', 403, {}],
      ['another content type than the job takes', soldJob, 415, {}],
      [
        'a content type that no runner could be given',
        soldJob,
        400,
        { 'content-type': `a/${'x'.repeat(300)}` },
      ],
      ['an undecodable payment for an unknown job', '/x402/jobs/7/7', 404, { 'x-payment': 'x' }],
    ] as const) {
      const request = await headOf(gateway.url, path, { ...post, ...headers });
      expect([name, await request.status()]).toEqual([name, status]);
    }
  });

  test('where the budget of its client is spent', async () => {
    const gateway = await start({ tables: '[limits]\nrequests_per_minute = 2' });
    for (let i = 0; i < 2; i++)
      expect(await (await headOf(gateway.url, soldJob)).status(300)).toBeUndefined();
    for (let i = 0; i < 2; i++) expect(await (await headOf(gateway.url, soldJob)).status()).toBe(429);
    const dry = await headOf(gateway.url, `${soldJob}/auth-dry-run`);
    expect(await dry.status()).toBe(429);
  });
});

test('a client that sends its whole body before it reads still gets its refusal, and keeps its connection', async () => {
  const gateway = await start({
    ...everything,
    tables: `${everything.tables}\n[limits]\nrequests_per_minute = 1`,
  });
  await gateway.post(soldJob, { body: 'x' });
  const bodyBytes = 900_000;
  for (const [path, refusal] of [
    [soldJob, 429],
    ['/v1/chat/completions', 429],
    ['/runner/leases', 401],
  ] as const) {
    const request = await headOf(gateway.url, path, { ...json, 'content-length': bodyBytes });
    request.socket.pause();
    for (let sent = 0; sent < bodyBytes; sent += 100_000) {
      request.socket.write(Buffer.alloc(100_000, 'x'));
      await sleep(5);
    }
    request.socket.resume();
    expect([path, await request.status()]).toEqual([path, refusal]);
    request.socket.write('GET /x402/health HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually(async () => expect(request.text()).toContain('HTTP/1.1 200 OK'));
  }
});

const form = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': 30_000 };
const digest = `0x${'1'.repeat(64)}`;

test.each([
  ['/api/auth/sign-in/email', json],
  ['/api/siwe/verify', json],
  ['/x402/receipts/token', { ...json, 'content-length': 100 }],
  [`/x402/receipts/${digest}/token`, { ...json, 'content-length': 100 }],
  ['/sign-in', form],
  ['/jobs/1/0/order', form],
  ['/console/sign-in', form],
])(
  'a client that has spent its budget is refused by the head of a request for %s, before its body is read',
  async (path, headers) => {
    const gateway = await start({
      ...everything,
      tables: `${everything.tables}\n[pages]\n[console]\n[limits]\nrequests_per_minute = 1`,
    });
    const first = await headOf(gateway.url, path, headers);
    expect(await first.status(300)).toBeUndefined();
    const refused = await headOf(gateway.url, path, headers);
    expect(await refused.status()).toBe(429);
    expect(refused.text().toLowerCase()).toMatch(/retry-after: [1-9]/);
  },
);

describe('a connection on which a client continues after 429', () => {
  const spent = { tables: '[limits]\nrequests_per_minute = 1' };

  /** Sends heads of this length, each once the one before is answered; returns the number of answers and whether the connection was closed. */
  async function goOn(bodyBytes: number, times: number) {
    const gateway = await start(spent);
    await gateway.post(soldJob, { body: 'x' });
    const request = await headOf(gateway.url, soldJob, { ...post, 'content-length': bodyBytes });
    const answers = (): number => request.text().split('HTTP/1.1 429').length - 1;
    for (let sent = 1; sent < times && !request.socket.destroyed; sent++) {
      await eventually(() => expect(answers()).toBe(sent));
      request.socket.write(
        `${'x'.repeat(bodyBytes)}POST ${soldJob} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bodyBytes}\r\n\r\n`,
      );
    }
    return { request, answers };
  }

  test('is closed after 32 of them', async () => {
    const { request, answers } = await goOn(1, 33);
    await eventually(() => expect([answers(), request.socket.closed]).toEqual([33, true]));
    expect(request.text().toLowerCase()).toMatch(/connection: close\r\n[^]*$/);
  });

  test('is closed earlier where bodies come with them, but never by its first 429', async () => {
    const { request, answers } = await goOn(1_048_576, 2);
    await eventually(() => expect(request.socket.closed).toBe(true));
    expect(answers()).toBeGreaterThanOrEqual(1);
    expect(request.text().toLowerCase()).toContain('connection: keep-alive');
  });
});

const mebibyte = 1_048_576;
/** Of four mebibytes one is for bodies that arrive: half of it for one client. */
const little = {
  tables: '[limits]\nrequests_per_minute = 0',
  constants: { limits: { maxInFlightRequests: 80, maxBodyMemoryBytes: 4 * mebibyte } },
};

describe('the memory of all bodies', () => {
  test('has a bound: of the bodies of one client the largest are dropped with 503, and another client is served', async () => {
    const gateway = await start(little);
    const sending = await Promise.all(
      Array.from({ length: 8 }, () => headOf(gateway.url, soldJob, { ...post, 'content-length': 400_000 })),
    );
    const sendHalf = () =>
      Promise.all(
        sending.map(({ socket }) => new Promise((resolve) => socket.write(Buffer.alloc(200_000), resolve))),
      );
    await sendHalf();
    const other = { 'x-forwarded-for': '10.0.0.9' };
    const served = await gateway.post(soldJob, { body: 'x'.repeat(100_000), headers: other });
    expect(served.json.code).not.toBe('overloaded');
    await sendHalf();
    const statuses = await Promise.all(sending.map((request) => request.status()));
    const dropped = sending.filter((_, at) => statuses[at] === 503);
    expect(dropped.length).toBeGreaterThanOrEqual(6);
    expect(dropped[0]?.text().toLowerCase()).toContain('retry-after: 1');
    expect(dropped[0]?.text()).toContain('"overloaded"');
  });

  test('counts what has arrived, not what a client declares', async () => {
    const gateway = await start(little);
    await Promise.all(
      Array.from({ length: 16 }, () => headOf(gateway.url, soldJob, { ...post, 'content-length': mebibyte })),
    );
    expect((await gateway.post(soldJob, { body: 'x' })).json.code).not.toBe('overloaded');
  });

  test('a client that opens requests and sends nothing keeps out only itself', async () => {
    const gateway = await start(little);
    const idle = await Promise.all(Array.from({ length: 40 }, () => headOf(gateway.url, soldJob)));
    await eventually(async () => {
      const statuses = await Promise.all(idle.map((request) => request.status(0)));
      expect(statuses.filter((status) => status === 503)).toHaveLength(20);
    });
    const other = { 'x-forwarded-for': '10.0.0.9' };
    expect((await gateway.post(soldJob, { body: 'x', headers: other })).json.code).not.toBe('overloaded');
  });
});

const isRequest = ({ msg }: { readonly msg: string }): boolean => msg === 'request';

const bodyRoutes = [
  '/api/auth/sign-in/email',
  '/api/siwe/verify',
  '/operator/keys',
  '/runner/leases',
  '/v1/chat/completions',
  soldJob,
];

test('a client that leaves leaves a line in the log, no error, no stack trace, and no memory in use', async () => {
  const log = logLines();
  const tables = `${everything.tables}\n${little.tables}`;
  const gateway = await start({ ...everything, ...little, tables, logger: log.logger });
  const body = JSON.stringify({ email: 'ada@example.org', password: 'x', pad: 'x'.repeat(30_000) });
  const sent = {
    'content-type': 'application/json',
    'content-length': body.length,
    expect: '100-continue',
  };
  for (const path of bodyRoutes) {
    const all = await Promise.all(Array.from({ length: 15 }, () => headOf(gateway.url, path, sent)));
    // a request whose head has not arrived leaves no line
    await eventually(() => {
      for (const request of all) expect(request.text()).toMatch(/^HTTP/);
    });
    for (const [at, { socket }] of all.entries()) socket.write(at === 0 ? body.slice(0, 1_000) : body);
    // most of the bodies have arrived
    await sleep(100);
    for (const { socket } of all) socket.resetAndDestroy();
  }
  await eventually(async () => expect(log.lines.filter(isRequest)).toHaveLength(bodyRoutes.length * 15));
  expect(log.lines.filter((line) => line.level > 40 || 'err' in line)).toEqual([]);
  // a body that has arrived is in memory until its handler ends, which may be after its client has left
  await eventually(async () => {
    const after = await fetch(`${gateway.url}/api/auth/sign-in/email`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    expect(await after.json()).not.toMatchObject({ code: 'overloaded' });
  });
});
