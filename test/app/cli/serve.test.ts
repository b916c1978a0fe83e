import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../../src/app/start.ts';
import { loadConfig } from '../../../src/base/config/load.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, signOffer } from '../../support/payer.ts';
import { type Ended, type Program, startTollbook, temporaryFolder, tollbook } from '../../support/program.ts';
import { runInProcess } from '../../support/run-in-process.ts';
import { type Reaction, startTestRunner, type TestRunner } from '../../support/runner.ts';
import { soonMs } from '../../support/time-limits.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const done: Reaction = { status: 200, body: 'done' };

/** The development config with the addresses of this test, on any free port. */
function configFile(runner: TestRunner, facilitatorUrl = chain.facilitatorUrl): string {
  const file = path.join(temporaryFolder(), 'gateway.toml');
  const text = readFileSync('config/dev.toml', 'utf8')
    .replaceAll(/127\.0\.0\.1:840[25]/g, '127.0.0.1:0')
    .replaceAll('http://127.0.0.1:8412', chain.rpcUrl)
    .replaceAll('http://127.0.0.1:8413', facilitatorUrl)
    .replaceAll('http://127.0.0.1:8414/calls', runner.url);
  writeFileSync(file, text);
  return file;
}

const secrets = { TOLLBOOK_RUNNER_TOKEN: 'a-runner-token-of-enough-characters' };

/** The gateway in this process, for tests that concern what it and the operator's commands do together. */
async function serveHere(
  database: TestDatabase,
  runner: TestRunner,
  file = configFile(runner),
): Promise<{ url: string }> {
  const { config } = await loadConfig(file, secrets);
  const logger = pino({ level: 'silent' });
  const gateway = await startGateway({ config, databaseUrl: database.url, logger });
  onTestFinished(async () => void (await gateway.stop()));
  return gateway;
}

async function serve(
  database: TestDatabase,
  runner: TestRunner,
  file = configFile(runner),
  workers: readonly string[] = [],
): Promise<Program & { url: string }> {
  const program = startTollbook(['serve', '--config', file, ...workers], {
    ...secrets,
    DATABASE_URL: database.url,
  });
  const [, url = ''] = await program.says(/"url":"([^"]+)","msg":"listening"/);
  return { ...program, url };
}

async function post({ url }: { readonly url: string }, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/x402/jobs/1/0`, { method: 'POST', body: 'x', headers });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

async function pay(gateway: { readonly url: string }): Promise<{ digest: string; callId: number }> {
  const { status, json } = await post(gateway, header(await signOffer(offerOf(await post(gateway)))));
  expect(status).toBe(202);
  return { digest: json.quote_digest, callId: json.call_id };
}

async function typesOf({ pool }: TestDatabase, digest: string): Promise<string[]> {
  return (await readStream(pool, digest)).events.map(({ type }) => type);
}

test('a call whose gateway was killed during its delivery is delivered again by another gateway, with the same id', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(({ attempt }) => (attempt === 1 ? 'silence' : done));
  const killed = await serve(database, runner);
  const { digest, callId } = await pay(killed);
  await eventually(() => expect(runner.deliveries).toHaveLength(1));
  killed.kill('SIGKILL');
  await killed.ended;

  await database.moveClock(61);
  await serveHere(database, runner);
  await eventually(async () => expect(await typesOf(database, digest)).toContain('completed'));
  const [first, second] = runner.deliveries;
  expect([first, second]).toMatchObject([
    { callId, attempt: 1 },
    { callId, attempt: 2, id: first?.id },
  ]);
  expect(runner.deliveries).toHaveLength(2);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'payment_settled' || type === 'completed')).toHaveLength(2);
});

async function readAt(url: string, route: string): Promise<{ status: number; text: string }> {
  const response = await fetch(url + route);
  return { status: response.status, text: await response.text() };
}

test('a gateway without workers sells and says that none run; a process with workers alone delivers, and serves no client', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => done);
  const file = configFile(runner);
  const gateway = await serve(database, runner, file, ['--workers', 'none']);
  const stateOf = async (): Promise<unknown> => JSON.parse((await readAt(gateway.url, '/status')).text);
  const { digest } = await pay(gateway);
  await eventually(async () =>
    expect(await stateOf()).toMatchObject({ status: 'degraded', workers: { status: 'degraded' } }),
  );
  expect(await readAt(gateway.url, '/x402/ready')).toMatchObject({ status: 200 });
  expect(await typesOf(database, digest)).not.toContain('delivered');

  const workers = await serve(database, runner, file, ['--workers', 'only']);
  await eventually(async () => expect(await typesOf(database, digest)).toContain('completed'));
  await eventually(async () => expect(await stateOf()).toMatchObject({ status: 'ok' }));
  expect(await readAt(workers.url, '/x402/health')).toEqual({ status: 200, text: 'ok' });
  await eventually(async () =>
    expect(await readAt(workers.url, '/x402/ready')).toMatchObject({ status: 200 }),
  );
  for (const route of ['/x402/stats', '/x402/prices', `/x402/receipts/${digest}`, '/openapi.json', '/docs'])
    expect(await readAt(workers.url, route)).toMatchObject({ status: 404 });
  const sold = await fetch(`${workers.url}/x402/jobs/1/0`, { method: 'POST', body: 'x' });
  expect(sold.status).toBe(404);
});

test('serve names the three answers of --workers', async () => {
  const refused = await runInProcess(['serve', '--config', 'config/dev.toml', '--workers', 'some'], {});
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain('--workers is one of all, none, only');
});

test('a call whose gateway was killed between its settlement and its answer is enqueued within 15 seconds by the next gateway', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => done);
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const file = configFile(runner, proxy.url);
  const killed = await serve(database, runner, file);
  const landed = new Promise<void>((resolve) => {
    proxy.faults.settle = {
      change: async (answer) => {
        resolve();
        await killed.exited;
        return answer;
      },
    };
  });
  const offered = await fetch(`${killed.url}/x402/jobs/1/0`, { method: 'POST', body: 'x' });
  const payment = await signOffer(
    offerOf({ status: 402, headers: offered.headers, text: '', json: undefined }),
  );
  const answer = fetch(`${killed.url}/x402/jobs/1/0`, {
    method: 'POST',
    body: 'x',
    headers: header(payment),
  });
  const cut = answer.then(
    () => 'answered',
    () => 'cut',
  );
  await landed;
  killed.kill('SIGKILL');
  await killed.ended;
  expect(await cut).toBe('cut');

  const next = await serveHere(database, runner, file);
  const restartedAt = performance.now();
  const digest = payment.accepted.extra['quoteDigest'] ?? '';
  await eventually(async () => expect(await typesOf(database, digest)).toContain('enqueued'));
  expect(performance.now() - restartedAt).toBeLessThan(soonMs(15_000));
  await eventually(async () => expect(await typesOf(database, digest)).toContain('completed'));
  const receipt = await (await fetch(`${next.url}/x402/receipts/${digest}`)).json();
  expect(receipt).toMatchObject({ state: 'completed', paid: true });
  expect(runner.deliveries).toHaveLength(1);
});

test.each(['SIGTERM', 'SIGINT'] as const)(
  'a gateway that gets %s finishes the delivery in its hands',
  async (signal) => {
    const database = await createDatabase();
    const answer = Promise.withResolvers<Reaction>();
    const runner = await startTestRunner(() => answer.promise);
    const gateway = await serve(database, runner);
    const { digest } = await pay(gateway);
    await eventually(() => expect(runner.deliveries).toHaveLength(1));
    gateway.kill(signal);
    await gateway.says(/"msg":"stopping: /);
    gateway.kill(signal);
    answer.resolve(done);
    expect(await gateway.ended).toMatchObject({ code: 0, stderr: '' });
    expect(await typesOf(database, digest)).toContain('completed');
  },
);

/** Sends the head of a request and not its body. */
async function beginRequest(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write('POST /x402/jobs/1/0 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123');
}

const lastLine = ({ stdout }: Ended): unknown => JSON.parse(stdout.trim().split('\n').at(-1) ?? '');

test('a gateway that stops is not ready first, serves until the delay is over, and says last how it ended; a second signal ends it', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => done);
  const file = configFile(runner);
  writeFileSync(file, readFileSync(file, 'utf8').replace('drain_delay_secs = 0', 'drain_delay_secs = 8'));
  const [patient, hurried] = [await serve(database, runner, file), await serve(database, runner, file)];
  await beginRequest(hurried.url);
  const payment = header(await signOffer(offerOf(await post(patient))));
  for (const gateway of [patient, hurried]) gateway.kill('SIGTERM');
  await eventually(async () =>
    expect(await readAt(patient.url, '/x402/ready')).toMatchObject({
      status: 503,
      text: expect.stringContaining('"draining":true') as unknown,
    }),
  );
  expect((await post(patient, payment)).status).toBe(202);
  // a signal within a second of the first counts as the same one
  await eventually(() => {
    hurried.kill('SIGTERM');
    expect(hurried.stdout()).toContain('stopped immediately by a second signal');
  });
  const [calm, cut] = [await patient.ended, await hurried.ended];
  expect([calm.code, cut.code]).toEqual([0, 2]);
  expect(lastLine(calm)).toMatchObject({ level: 'info', msg: 'stopped: every request has its answer' });
  expect(lastLine(cut)).toMatchObject({
    level: 'warn',
    requests_cut: 1,
    msg: 'stopped immediately by a second signal',
  });
});

test('what keeps a gateway from starting is a sentence that says what to do', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => done);
  const file = configFile(runner);
  const start = async (url: string, config = file): Promise<string> => {
    const args = ['serve', '--config', config];
    const { code, stdout, stderr } = await tollbook(args, { ...secrets, DATABASE_URL: url });
    expect(code).toBe(2);
    expect(stdout).not.toContain('stack');
    return stderr;
  };
  const away = 'postgresql://someone:a%23secret@127.0.0.1:9/ledger';
  expect(await start(away)).toBe(
    'The database at 127.0.0.1:9 cannot be used (ECONNREFUSED). Start it, let this machine reach it, or correct DATABASE_URL.\n',
  );
  const nowhere = database.url.replace(/test_[0-9a-f]+/, 'test_nowhere');
  expect(await start(nowhere)).toMatch(
    /^The server at \S+ has no database test_nowhere\. Create it, or correct DATABASE_URL\.\n$/,
  );
  const taken = new URL(runner.url).host;
  const config = path.join(temporaryFolder(), 'taken.toml');
  writeFileSync(config, readFileSync(file, 'utf8').replace('127.0.0.1:0', taken));
  expect(await start(database.url, config)).toBe(
    `The address ${taken} is in use by another program. Stop that one, or choose another bind_address.\n`,
  );
  await database.asOwner((owner) =>
    owner.query(`insert into tollbook.migration values ('9999-of-the-next-version', now())`),
  );
  expect(await start(database.url)).toBe(
    'The database is newer than this program: it has the migrations 9999-of-the-next-version. Use the version that made them, ' +
      'or a newer one.\n',
  );
});

test('a mistake in REPLICA_URL ends the start; a server that is no replica does not, and the log says why it is not used', async () => {
  const database = await createDatabase();
  const file = configFile(await startTestRunner(() => done));
  const args = ['serve', '--config', file];
  const env = { ...secrets, DATABASE_URL: database.url };
  const { code, stdout, stderr } = await tollbook(args, { ...env, REPLICA_URL: 'mysql://u:hush@one,two/x' });
  expect([code, stderr]).toEqual([78, expect.stringContaining('REPLICA_URL: is not a PostgreSQL URL')]);
  expect(stdout + stderr).not.toContain('hush');
  // the primary itself takes writes
  const program = startTollbook(args, { ...env, REPLICA_URL: database.url });
  const [, url = ''] = await program.says(
    /it is no standby[^\n]*"msg":"a replica is not used: the primary answers"[^]*"url":"([^"]+)","msg":"listening"/,
  );
  const stats = await fetch(`${url}/x402/stats`);
  expect([stats.status, stats.headers.get('tollbook-as-of')]).toEqual([200, expect.stringMatching(/^\d+$/)]);
});

test('the operator requeues dead letters by service, reason and time, and gives one up: its refund is due', async () => {
  const database = await createDatabase();
  const env = { DATABASE_URL: database.url };
  let isWanted = false;
  const runner = await startTestRunner(() => (isWanted ? done : { status: 422 }));
  const gateway = await serveHere(database, runner);
  const [given, kept] = [await pay(gateway), await pay(gateway)];
  for (const { digest } of [given, kept])
    await eventually(async () => expect(await typesOf(database, digest)).toContain('dead_lettered'));
  const filters = ['--service', '1', '--reason', 'status_422', '--since', '2020-01-01T00:00:00Z'];
  const requeue = (...more: string[]) => tollbook(['calls', 'requeue', ...filters, ...more], env);
  const words = ['--why', 'the runner is gone', '--by', 'ada'];
  expect((await requeue('--dry-run')).stdout).toBe(
    '2 calls would be queued again; nothing was changed. 0 skipped.\n',
  );
  expect(await tollbook(['calls', 'discard', String(given.callId), ...words], env)).toMatchObject({
    code: 0,
    stdout: `Call ${given.callId} is given up. Its refund is due: see \`tollbook refunds due\`.\n`,
  });
  isWanted = true;
  const [due, requeued] = await Promise.all([tollbook(['refunds', 'due'], env), requeue()]);
  expect(due.stdout).toContain(given.digest);
  expect(requeued.stdout).toBe('1 calls queued again. 0 skipped.\n');
  await eventually(async () => expect(await typesOf(database, kept.digest)).toContain('completed'));
  expect(await typesOf(database, given.digest)).not.toContain('completed');
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'operator_discarded').map(({ data }) => data)).toEqual([
    { call_id: given.callId, why: 'the runner is gone', operator: 'ada' },
  ]);
});

test('the operator pauses a runner, and no call goes to it until it is resumed', async () => {
  const database = await createDatabase();
  const env = { DATABASE_URL: database.url };
  const runner = await startTestRunner(() => done);
  const change = (verb: string) => tollbook(['runners', verb, 'runner-1', '--by', 'ada'], env);
  expect(await change('resume')).toMatchObject({ code: 2 });
  expect(await change('pause')).toMatchObject({ code: 0, stderr: '' });
  const { digest } = await pay(await serveHere(database, runner));
  expect(await change('pause')).toMatchObject({ code: 2 });
  expect(runner.deliveries).toEqual([]);
  expect(await change('resume')).toMatchObject({ code: 0, stderr: '' });
  await eventually(async () => expect(await typesOf(database, digest)).toContain('completed'));
});

test('SIGHUP loads new prices; a file with a mistake changes nothing, and its mistake is logged', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => done);
  const file = configFile(runner);
  const gateway = await serve(database, runner, file);
  const priceWei = async () => {
    const response = await fetch(`${gateway.url}/x402/jobs/1/0/price`);
    return ((await response.json()) as { price_wei: string }).price_wei;
  };
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace('0 = "1000000000000000" # 3.264000 USDC', '0 = "7"'));
  gateway.kill('SIGHUP');
  await gateway.says(/"msg":"configuration loaded"/);
  expect(await priceWei()).toBe('7');
  writeFileSync(file, text.replace('markup_bps = 200', 'markup_bps = "lots"'));
  gateway.kill('SIGHUP');
  const [line] = await gateway.says(/.*nothing was changed.*/);
  expect(JSON.parse(line)).toMatchObject({ mistakes: [{ path: 'markup_bps', line: expect.any(Number) }] });
  expect(await priceWei()).toBe('7');
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.map(({ type }) => type)).toEqual([
    'operator_config_loaded',
    'operator_models_loaded',
    'operator_config_refused',
  ]);
});

test('a caller checks a restricted job from the shell: it prints a table, exits with 0 or 1, and takes no key in an argument', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => done);
  const gateway = await serveHere(database, runner);
  const dryRun = (key: string, job = '4') =>
    tollbook(['auth-dry-run', '1', job, 'hello', '--url', gateway.url], { TOLLBOOK_CALLER_KEY: key });
  const allowed = await dryRun(devnetKeys.permittedCaller);
  expect(allowed).toMatchObject({ code: 0, stderr: '' });
  expect(allowed.stdout).toMatch(/pass {2}signature[\s\S]*pass {2}permission[\s\S]*allowed/);
  const refused = await dryRun(devnetKeys.refusedCaller);
  expect(refused.code).toBe(1);
  expect(refused.stdout).toMatch(/FAIL {2}permission[\s\S]*refused: 403 caller_not_permitted/);
  const disabled = await dryRun(devnetKeys.permittedCaller, '5');
  expect(disabled.code).toBe(0);
  expect(disabled.stdout).toMatch(/pass {2}permission[\s\S]*allowed, once the job is enabled/);
  expect(await tollbook(['auth-dry-run', '1', '4', 'hello', '--url', gateway.url])).toMatchObject({
    code: 2,
  });
});
