import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { signWebhook } from '../../../../src/base/values/call-signature.ts';
import { allEvents } from '../../../support/ledger-faults.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import {
  type Answer,
  configText,
  receiptKey,
  runnerSecret,
  startTestGateway,
  testConfig,
} from '../../../support/gateway.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { logLines } from '../../../support/log-lines.ts';
import { startTollbook, temporaryFolder } from '../../../support/program.ts';
import { startTestRunner, type TestRunner } from '../../../support/runner.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const secondSecret = 'a second secret of the sender, as plain text'.replaceAll(' ', '-');
const env = { ORDERS: secret, ORDERS_2: secondSecret, OTHER: 'the-secret-of-another-trigger-of-this-file' };
const triggers = `
[[triggers]]
name = "orders"
kind = "webhook"
service_id = 1
job_index = 0
secret = ["env:ORDERS", "env:ORDERS_2"]

[[triggers]]
name = "other"
kind = "webhook"
service_id = 1
job_index = 1
secret = "env:OTHER"
`;

interface Started {
  readonly database: TestDatabase;
  readonly runner: TestRunner;
  readonly gateways: Awaited<ReturnType<typeof startTestGateway>>[];
  readonly send: (headers: Record<string, string>, body?: string, to?: string) => Promise<Answer>;
}

async function start({
  limits = '',
  count = 1,
  until = Promise.resolve(),
  maxBodyBytes = 1_048_576,
} = {}): Promise<Started> {
  const database = await createDatabase();
  const runner = await startTestRunner(async () => {
    await until;
    return { status: 200, body: 'done' };
  });
  const tables = `${triggers}\n[limits]\n${limits}`;
  const constants = { webhookTrigger: { maxBodyBytes } };
  const one = () => startTestGateway({ database, chain, runnerUrl: runner.url, tables, env, constants });
  const gateways = await Promise.all(Array.from({ length: count }, one));
  let turn = 0;
  const send: Started['send'] = async (headers, body = '{"order":1}', to = 'orders') => {
    const gateway = gateways[turn++ % count];
    if (!gateway) throw new Error('no gateway');
    return gateway.post(`/triggers/webhook/${to}`, { body, headers });
  };
  return { database, runner, gateways, send };
}

/** As the official library signs. */
function signed(
  id: string,
  body = '{"order":1}',
  { key = secret, ageSecs = 0 } = {},
): Record<string, string> {
  const at = new Date(Date.now() - ageSecs * 1_000);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': new Webhook(key.slice('whsec_'.length)).sign(id, at, body),
  };
}

function signedByText(id: string, body: string, key: string): Record<string, string> {
  const timestampSecs = Math.floor(Date.now() / 1_000);
  return { ...signWebhook({ secret: key, id, timestampSecs, body: Buffer.from(body) }) };
}

async function madeCalls(database: TestDatabase) {
  return (await allEvents(database.db)).filter(({ type }) => type === 'call_triggered');
}

async function expectSound(database: TestDatabase): Promise<void> {
  // runners complete calls meanwhile
  await eventually(() => database.asOwner((owner) => expectSoundLedger(database.db, owner)));
}

describe('a signed webhook', () => {
  test('is answered with the id of its call, and the runner gets its bytes and content type', async () => {
    const { database, runner, send } = await start();
    const headers = { ...signed('msg_1'), 'content-type': 'application/vnd.orders+json' };
    const { status, json, headers: answered } = await send(headers);
    expect([status, json]).toEqual([
      202,
      {
        status: 'triggered',
        call_id: expect.any(Number) as number,
        idempotency_key: expect.stringMatching(/^0x[0-9a-f]{64}$/) as string,
      },
    ]);
    expect(answered.get('cache-control')).toBe('no-store');
    await eventually(() => expect(runner.deliveries).toHaveLength(1));
    const [delivery] = runner.deliveries;
    expect(delivery).toMatchObject({ callId: json.call_id, id: json.idempotency_key, attempt: 1 });
    expect(delivery?.body.toString()).toBe('{"order":1}');
    expect(delivery?.headers).toMatchObject({
      'content-type': 'application/vnd.orders+json',
      'x-net-trigger': 'webhook',
      'x-net-trigger-name': 'orders',
      'x-net-trigger-id': 'msg_1',
      'x-net-service-id': '1',
    });
    expect(delivery?.headers['x-x402-origin']).toBeUndefined();
    const [event] = await madeCalls(database);
    expect(event?.data).toMatchObject({ trigger: 'webhook', trigger_name: 'orders', trigger_id: 'msg_1' });
    await expectSound(database);
  });

  test('is taken with either secret while one replaces the other, and with several signatures', async () => {
    const { database, send } = await start();
    const body = 'plain text';
    expect((await send(signedByText('a', body, secondSecret), body)).status).toBe(202);
    const old = signed('b', body);
    const both = `v1,bm90aGluZw== v1a,b3RoZXI= ${old['webhook-signature']}`;
    expect((await send({ ...old, 'webhook-signature': both }, body)).status).toBe(202);
    expect(await madeCalls(database)).toHaveLength(2);
  });

  test('that comes again gets the same answer, and one with another body a conflict: one call in all', async () => {
    const { database, send } = await start();
    const first = await send(signed('msg_1'));
    const again = await send(signed('msg_1', undefined, { ageSecs: 20 }));
    expect([again.status, again.json]).toEqual([202, first.json]);
    expect([first, again].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    const other = await send(signed('msg_1', '{"order":2}'), '{"order":2}');
    expect([other.status, other.json.code]).toEqual([409, 'webhook_id_conflict']);
    // another trigger has ids of its own
    const body = '{"order":2}';
    const elsewhere = await send(signedByText('msg_1', body, env.OTHER), body, 'other');
    expect(elsewhere.status).toBe(202);
    expect(elsewhere.json.call_id).not.toBe(first.json.call_id);
    expect(await madeCalls(database)).toHaveLength(2);
    await expectSound(database);
  });
});

test('a webhook is taken with either of two secrets that a reload has set, and the log says when the second one was used', async () => {
  const database = await createDatabase();
  const log = logLines();
  const [last, next] = [
    'the-secret-of-the-sender-before-the-change',
    'the-secret-of-the-sender-after-the-change',
  ];
  const withSecrets = (first: string, second?: string) => ({
    database,
    chain,
    logger: log.logger,
    files: { first, second: second ?? '' },
    tables: `[[triggers]]
name = "orders"
kind = "webhook"
service_id = 1
job_index = 0
secret = ${second === undefined ? '"file:first"' : '["file:first", "file:second"]'}`,
  });
  const gateway = await startTestGateway(withSecrets(last));
  let sent = 0;
  const statuses = async () => {
    const answers = [last, next].map((key) => {
      const headers = signedByText(`message-${sent++}`, 'a body', key);
      return gateway.post('/triggers/webhook/orders', { body: 'a body', headers });
    });
    return (await Promise.all(answers)).map(({ status }) => status);
  };
  const uses = () => log.lines.filter(({ secret: name }) => name === 'triggers.orders.secret').length;
  expect(await statuses()).toEqual([202, 401]);
  expect(await gateway.reload(await testConfig(withSecrets(last, next)))).toEqual([]);
  expect(uses()).toBe(0);
  expect(await statuses()).toEqual([202, 202]);
  expect(uses()).toBe(1);
  await gateway.reload(await testConfig(withSecrets(next, last)));
  expect(await statuses()).toEqual([202, 202]);
  await gateway.reload(await testConfig(withSecrets(next)));
  expect(await statuses()).toEqual([401, 202]);
  expect(JSON.stringify(log.lines)).not.toMatch(/the-secret-of-the-sender/);
});

describe('a webhook is refused and makes no call', () => {
  const body = '{"order":1}';
  /** What else of its headers is wrong is in test/base/values/call-signature.test.ts. */
  const cases: readonly [
    string,
    () => Record<string, string>,
    number,
    string,
    { body?: string; to?: string }?,
  ][] = [
    ['without headers', () => ({}), 400, 'invalid_webhook'],
    ['with an old time', () => signed('a', body, { ageSecs: 400 }), 401, 'webhook_signature_mismatch'],
    [
      'signed with the secret of another trigger',
      () => signedByText('a', body, env.OTHER),
      401,
      'webhook_signature_mismatch',
    ],
    ['for a name that no trigger has', () => signed('a'), 404, 'trigger_not_found', { to: 'invoices' }],
    [
      'with a body above the limit',
      () => signed('a', 'x'.repeat(1_001)),
      413,
      'body_too_large',
      { body: 'x'.repeat(1_001) },
    ],
    [
      'with a content type of 201 characters',
      () => ({ ...signed('a'), 'content-type': `a/${'b'.repeat(199)}` }),
      400,
      'invalid_content_type',
    ],
    [
      'with a content encoding',
      () => ({ ...signed('a'), 'content-encoding': 'gzip' }),
      415,
      'unsupported_media_type',
    ],
  ];
  test('where anything of it is wrong', async () => {
    const { database, send } = await start({ maxBodyBytes: 1_000 });
    for (const [name, headers, status, code, { body: sent, to } = {}] of cases) {
      const answer = await send(headers(), sent, to);
      expect([name, answer.status, answer.json.code]).toEqual([name, status, code]);
    }
    expect(await madeCalls(database)).toEqual([]);
    // and a body that does not say how long it is
    const { gateways } = await start({ maxBodyBytes: 1_000 });
    const pieces = new ReadableStream({
      start(controller) {
        for (let n = 0; n < 20; n++) controller.enqueue(Buffer.from('x'.repeat(100)));
        controller.close();
      },
    });
    const init = { method: 'POST', headers: signed('a', 'x'.repeat(2_000)), body: pieces, duplex: 'half' };
    expect((await fetch(`${gateways[0]?.url}/triggers/webhook/orders`, init as RequestInit)).status).toBe(
      413,
    );
  });

  test('with a wrong signature and the largest body, twenty simultaneous ones: the next right one is taken', async () => {
    const { database, send } = await start();
    const large = 'x'.repeat(1_048_576);
    const wrong = { ...signedByText('w', large, env.OTHER), 'webhook-signature': `v1,${'A'.repeat(43)}=` };
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(wrong, large, 'other')));
    // of bodies that arrive at the same time, some may find no room
    const codes = new Set(answers.map(({ status, json }) => `${status} ${json.code}`));
    expect(codes).toContain('401 webhook_signature_mismatch');
    for (const code of codes) expect(code).toMatch(/^(?:401 webhook_signature_mismatch|503 overloaded)$/);
    const right = await send(signedByText('r', large, env.OTHER), large, 'other');
    expect(right.status).toBe(202);
    expect(await madeCalls(database)).toHaveLength(1);
    await expectSound(database);
  });

  test('where its client has sent too many without a right signature; those with one cost nothing', async () => {
    const { database, send } = await start({ limits: 'requests_per_minute = 5' });
    for (let n = 0; n < 8; n++) expect((await send(signed(`right-${n}`))).status).toBe(202);
    const wrong = async () => (await send({ ...signed('w'), 'webhook-signature': 'v1,AAAA' })).status;
    const statuses: number[] = [];
    for (let n = 0; n < 7; n++) statuses.push(await wrong());
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    const late = await send(signed('late'));
    expect([late.status, late.json.code]).toEqual([429, 'too_many_attempts']);
    expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await madeCalls(database)).toHaveLength(8);
  });

  test('where too many calls of triggers wait: it is made when it comes again later', async () => {
    const held = Promise.withResolvers<void>();
    const { database, send } = await start({ limits: 'max_outstanding_calls = 1', until: held.promise });
    expect((await send(signed('first'))).status).toBe(202);
    const busy = await send(signed('late'));
    expect([busy.status, busy.json.code]).toEqual([503, 'enqueue_failed']);
    expect(await madeCalls(database)).toHaveLength(1);
    held.resolve();
    await eventually(async () => expect((await send(signed('late'))).status).toBe(202));
    await expectSound(database);
  });
});

test('a webhook whose gateway is killed makes one call when it is sent again, and every one that was answered has its call', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
  const file = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(
    file,
    configText({ database, chain, runnerUrl: runner.url, tables: triggers }).replace('"silent"', '"info"'),
  );
  const variables = {
    DATABASE_URL: database.url,
    RUNNER_TOKEN: runnerSecret,
    RECEIPT_KEY: receiptKey,
    ...env,
  };
  const serve = async () => {
    const program = startTollbook(['serve', '--config', file], variables);
    onTestFinished(() => program.kill('SIGKILL'));
    const [, url = ''] = await program.says(/"url":"([^"]+)","msg":"listening"/);
    return { program, url };
  };
  const answered = new Map<string, string>();
  const sent: string[] = [];
  const post = async (url: string, id: string): Promise<void> => {
    const body = `body of ${id}`;
    const answer = await fetch(`${url}/triggers/webhook/orders`, {
      method: 'POST',
      body,
      headers: signed(id, body),
    });
    if (answer.status !== 202) return;
    const { call_id: callId } = (await answer.json()) as { call_id: number };
    expect(answered.get(id) ?? String(callId)).toBe(String(callId));
    answered.set(id, String(callId));
  };
  for (let round = 0; round < 2; round++) {
    const { program, url } = await serve();
    const senders = Array.from({ length: 8 }, async () => {
      for (;;) {
        const id = randomUUID();
        sent.push(id);
        await post(url, id);
      }
    });
    await eventually(() => expect(answered.size).toBeGreaterThan(20 * (round + 1)));
    program.kill('SIGKILL');
    await Promise.allSettled(senders);
    await program.exited;
  }
  const { url } = await serve();
  const before = new Map(answered);
  for (const id of sent) await post(url, id);
  expect(answered.size).toBe(sent.length);
  for (const [id, callId] of before) expect([id, answered.get(id)]).toEqual([id, callId]);
  const made = await madeCalls(database);
  expect(new Set(made.map(({ data }) => 'trigger_id' in data && data.trigger_id))).toEqual(new Set(sent));
  expect(made).toHaveLength(sent.length);
  await expectSound(database);
});
