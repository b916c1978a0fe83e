import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { goLive } from '../../../../src/finance/use-cases/recovery/go-live.ts';
import { queueAlert } from '../../../../src/ledger/store/alerts.ts';
import { openLedger } from '../refunds/support.ts';
import { oneModel } from '../../../support/chat-gateway.ts';
import { becomeCopy } from '../../../support/copy.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { startTestGateway, type TestGateway, startWithDatabase } from '../../../support/gateway.ts';
import { allEvents } from '../../../support/invariants.ts';
import { operatorOf } from '../../../support/operator.ts';
import { header, payFor, quoteAndSign } from '../../../support/payer.ts';
import { temporaryFolder } from '../../../support/program.ts';
import { startTestRunner } from '../../../support/runner.ts';
import { testSeed, testSigner } from '../../../support/log.ts';
import { eventually } from '../../../support/wait.ts';
import { startWitness } from '../../../support/witness.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const quiet = {
  status: 503,
  json: { code: 'quiet', error: expect.stringMatching(/This request charged nothing/) },
};
const order = { operator: 'ada', why: 'the primary burnt down', signer: testSigner, anchors: [] };

const recoveries = async (database: TestDatabase) =>
  (await allEvents(database.db)).filter(({ type }) => type === 'ledger_recovered');

test('a copy of the ledger makes no request to anyone and serves reads, until one command, once for all, goes live', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => ({ status: 503 }));
  const first = await startTestGateway({ database, chain, runnerUrl: runner.url });
  const paid = await payFor(first, job);
  const digest = paid.json.quote_digest as string;
  const unpaid = await quoteAndSign(first, job, 'x');
  await first.stop();
  await queueAlert(database.pool, ['webhook'], {
    kind: 'settlement_overdue',
    subject: '',
    status: 'firing',
    text: 'a test',
    details: {},
    id: 'a-test',
  });
  const operator = await operatorOf(database, ['audit:read', 'status:read', 'calls:write']);
  await becomeCopy(database);
  const recorded = await allEvents(database.db);

  const peers = await startWitness();
  const [anchors, mails] = [temporaryFolder(), temporaryFolder()];
  const options = {
    database,
    chain: { ...chain, rpcUrl: `${peers.url}/rpc` },
    facilitatorUrl: `${peers.url}/facilitator`,
    runnerUrl: `${peers.url}/runner`,
    top: 'features = ["x402", "chat"]',
    env: {
      LOG_KEY: testSeed.toString('hex'),
      S3_SECRET: 'AKIATEST:a-secret-of-the-bucket',
      SESSION_SECRET: 'a-secret-of-the-sessions-long-enough',
    },
    tables: `${oneModel(`${peers.url}/upstream`)}
[identity]
secret = "env:SESSION_SECRET"
siwe_chain_id = 84532
mail_dir = "${mails}"
[traces]
endpoint = "${peers.url}/traces"
[alerts]
webhook = "${peers.url}/alerts"
[log]
origin = "${testSigner.name}"
key = "env:LOG_KEY"
[[log.anchors]]
kind = "folder"
location = "${anchors}"
every_ms = 20
[[log.anchors]]
kind = "s3"
location = "${peers.url}/bucket"
region = "eu"
secret = "env:S3_SECRET"
every_ms = 20
[[log.anchors]]
kind = "webhook"
location = "${peers.url}/checkpoints"
every_ms = 20`,
  };
  const copy = await startTestGateway(options);
  expect(copy.quiet?.reason).toMatch(/system identifier 1,.*this is a copy, or the ledger was moved/);

  expect(await copy.post(job, { body: 'x' })).toMatchObject(quiet);
  expect(await copy.post(job, { body: 'x', headers: header(unpaid) })).toMatchObject(quiet);
  for (const path of [`${job}/price`, '/runner/leases', '/operator/dead-letters', '/api/auth/ok', '/nowhere'])
    expect(await copy.get(path, operator)).toMatchObject(quiet);
  expect(await copy.post('/runner/leases', { body: '{}' })).toMatchObject(quiet);
  expect(await copy.post(`/x402/receipts/${digest}/token`, { body: '{}' })).toMatchObject(quiet);
  const chat = { status: 503, json: { error: { code: 'quiet', type: 'server_error' } } };
  expect(await copy.post('/v1/chat/completions', { body: '{}' })).toMatchObject(chat);
  expect(await copy.get('/v1/models')).toMatchObject(chat);

  const token = { authorization: `Bearer ${paid.json.receipt_token as string}` };
  const receipt = { status: 200, json: { paid: true, quote_digest: digest } };
  expect(await copy.get(`/x402/receipts/${digest}`, token)).toMatchObject(receipt);
  expect(await copy.get('/x402/stats')).toMatchObject({ status: 200, json: { counters: { settled: 1 } } });
  await eventually(async () =>
    expect((await copy.get('/audit/payments', operator)).json.payments).toHaveLength(1),
  );
  for (const path of ['/x402/health', '/openapi.json', '/log/consistency?from=0&to=0'])
    expect((await copy.get(path)).json?.code).not.toBe('quiet');
  for (const path of ['/x402/ready', '/v1/ready'])
    await eventually(async () =>
      expect(await copy.get(path)).toMatchObject({
        status: 503,
        json: { status: 'not_ready', quiet: true, database: { ok: true } },
      }),
    );
  const status = { status: 'degraded', quiet: { status: 'degraded', detail: copy.quiet?.reason } };
  expect(await copy.get('/status', operator)).toMatchObject({ status: 200, json: status });
  expect((await copy.get('/status')).json.quiet).toEqual({ status: 'degraded' });

  await sleep(2_500);
  expect(peers.asked).toEqual([]);
  expect([...readdirSync(anchors), ...readdirSync(mails)]).toEqual([]);
  expect(await allEvents(database.db)).toEqual(recorded);

  // commands on two machines at once
  const results = await Promise.all([1, 2, 3].map(() => goLive(openLedger(database), order)));
  expect(results.map(({ kind }) => kind).toSorted()).toEqual(['is_live', 'is_live', 'went_live']);
  expect(await recoveries(database)).toMatchObject([
    { data: { generation: 2, reason: 'went_live', operator: 'ada', why: 'the primary burnt down' } },
  ]);
  await copy.quiet?.over;
  await copy.stop();
  expect(peers.asked).toEqual([]);

  // the same configuration, live: each peer would have been asked
  const live: TestGateway = await startTestGateway(options);
  expect(live.quiet).toBeUndefined();
  await eventually(() =>
    expect([...new Set(peers.asked)].toSorted()).toEqual(
      expect.arrayContaining(['alerts', 'bucket', 'checkpoints', 'facilitator', 'rpc', 'runner', 'traces']),
    ),
  );
  await eventually(() => expect(readdirSync(anchors)).toEqual(['jobs.example_log_2']));
  await live.stop();

  // the ledger itself, if an operator asks for quiet
  const askedBefore = peers.asked.length;
  const finance = await startTestGateway({ ...options, quiet: true });
  expect(finance.quiet?.reason).toBe('it was started so');
  expect(await finance.post(job, { body: 'x' })).toMatchObject(quiet);
  await finance.stop();
  expect(peers.asked).toHaveLength(askedBefore);
});

test('a quiet gateway that drains says so to its load balancer, and still serves reads', async () => {
  const { gateway } = await startWithDatabase({ chain, quiet: true, top: 'drain_delay_secs = 0' });
  expect(await gateway.get('/x402/ready')).toMatchObject({ json: { draining: false } });
  await gateway.drain();
  expect(await gateway.get('/x402/ready')).toMatchObject({ status: 503, json: { draining: true } });
  expect(await gateway.get('/x402/stats')).toMatchObject({ status: 200 });
});

test('nothing that asks a peer is loaded with a quiet gateway', async () => {
  const program = `
    import { registerHooks } from 'node:module';
    const seen = new Set();
    registerHooks({ load: (url, context, next) => { seen.add(url); return next(url, context); } });
    await import(${JSON.stringify(new URL('../../../../src/app/quiet-gateway.ts', import.meta.url).href)});
    console.log([...seen].join('\\n'));
    process.exit(0);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  const modules = stdout.split('\n').flatMap((url) => /(?<=\/)(?:src|node_modules)\/.*/.exec(url) ?? []);
  expect(modules).toContain('src/ledger/http/ready.ts');
  expect(modules.filter((name) => /^src\/[a-z]+\/peers\/|\/undici\//.test(name))).toEqual([]);
  const workers = modules.filter((name) => name.includes('/workers/'));
  expect(workers.toSorted()).toEqual([
    'src/audit/workers/projector.ts',
    'src/ledger/workers/database-watch.ts',
    'src/ledger/workers/loop.ts',
    'src/ledger/workers/readiness-checker.ts',
  ]);
});
