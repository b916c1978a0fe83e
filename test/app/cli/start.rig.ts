import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { loadConfig } from '../../../src/base/config/load.ts';
import { openCheckpoint, parseVerifierKey } from '../../../src/base/values/log/checkpoint.ts';
import { payForOneJob } from '../../../src/devnet/client.ts';
import { type DevnetDescription, readDescription } from '../../../src/devnet/description.ts';
import { freePort } from '../../../src/devnet/ports.ts';
import { balanceOf } from '../../../src/devnet/token.ts';
import type { Address, Hex } from '../../../src/base/values/primitives.ts';
import { endProcessesAround, processesAround, stillAlive } from '../../support/processes.ts';
import {
  destroy,
  makeFolder,
  type Program,
  spawnTollbook,
  startTollbook,
  temporaryFolder,
  tollbook,
} from '../../support/program.ts';
import { eventually } from '../../support/wait.ts';

const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const onPort = ['--port', String(port)];
const price = 3_264_000n;

// a test may start everything twice, on a machine that is busy with other tests
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

/** What a self-check leaves in the counters. */
const onePaidCall = { quoted: 1, settled: 1, accepted: 1, delivered: 1, completed: 1 };

/** Starts in a folder of this test, and leaves nothing that works in it. */
async function start(dir: string, until = /Try next/, options: readonly string[] = []): Promise<Program> {
  const program = spawnTollbook(['start', '--dir', dir, ...onPort, ...options]);
  onTestFinished(async () => {
    await destroy(program);
    await endProcessesAround(dir);
  });
  await program.says(until);
  return program;
}

async function getJson(address: string, headers: Record<string, string> = {}) {
  return (await (await fetch(address, { headers })).json()) as Record<string, unknown>;
}

async function counters(): Promise<Record<string, number>> {
  return (await getJson(`${url}/x402/stats`))['counters'] as Record<string, number>;
}

function earned({ rpc_url, token, pay_to }: DevnetDescription): Promise<bigint> {
  return balanceOf(rpc_url, token as Address, pay_to as Address);
}

function paidJob(devnet: DevnetDescription, gatewayUrl = devnet.gateway_url) {
  const privateKey = devnet.payer_private_key as Hex;
  return payForOneJob({ gatewayUrl, privateKey, serviceId: 1, jobIndex: 0, body: 'hello' });
}

function echoed(result: string): string {
  const { body_base64: body } = JSON.parse(result) as { body_base64: string };
  return Buffer.from(body, 'base64').toString();
}

async function expectNoProcesses(dir: string, processIds: readonly string[]): Promise<void> {
  await eventually(() => expect([...stillAlive(processIds), ...processesAround(dir)]).toEqual([]));
}

describe('a running start', () => {
  let dir: string;
  let program: Program;
  let devnet: DevnetDescription;

  beforeAll(async () => {
    dir = makeFolder();
    program = spawnTollbook(['start', '--dir', dir, ...onPort]);
    await program.says(/Try next/);
    devnet = await readDescription(dir);
  });
  afterAll(async () => {
    await destroy(program);
    await endProcessesAround(dir);
    rmSync(dir, { recursive: true, force: true });
  });

  test('pays for one job itself and shows its transaction and its result', async () => {
    const output = program.stdout();
    const [, transaction = ''] = /paid 3\.264 USDC in transaction (0x[0-9a-f]{64})/.exec(output) ?? [];
    const [, result = ''] = /runner's result: (\{.*\})/.exec(output) ?? [];
    expect(echoed(result)).toBe('hello, runner');
    expect(output).toContain(url);
    expect(await receiptOf(devnet.rpc_url, transaction)).toMatchObject({ status: '0x1' });
    expect(await earned(devnet)).toBe(price);
  });

  test('prints where the pages are, with a login and a wallet that work there', async () => {
    const [, email = '', password = ''] = /demo login +(\S+), password (\S+)/.exec(program.stdout()) ?? [];
    expect({ email, password }).toEqual(devnet.demo_user);
    const signedIn = await fetch(`${url}/api/auth/sign-in/email`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password }),
    });
    expect(await signedIn.json()).toMatchObject({ user: { email, emailVerified: true } });
    const page = await (await fetch(`${url}/sign-in`)).text();
    expect(page).toContain('Development wallet, devnet only.');
    const wallet = privateKeyToAddress(devnet.payer_private_key as Hex).toLowerCase();
    expect(page).toContain(`data-address="${wallet}"`);
    expect((await fetch(`${url}/devnet/wallet.js`)).status).toBe(200);
  });

  test('sells paths of an API, which refuses requests that bypass the gateway', async () => {
    const { routes_url: routes } = devnet;
    expect(program.stdout()).toContain(`${routes}/weather/berlin`);
    expect(await getJson(routes)).toEqual({
      paths: ['/weather/CITY', '/forecast/CITY', '/history/CITY?days=N'],
    });
    const before = await earned(devnet);
    const paid = await tollbook(['pay', '/weather/berlin', '--dir', dir]);
    expect(paid.code).toBe(0);
    expect(paid.stdout).toMatch(
      /^402 payment required.*\n200: 0x[0-9a-f]{40} paid in transaction 0x[0-9a-f]{64}\n\{"city":"berlin",/,
    );
    const stream = await tollbook(['pay', `${routes}/forecast/berlin`]);
    expect(stream.stdout.match(/^data: \{"hour":/gm)).toHaveLength(4);
    expect(await earned(devnet)).toBe(before + 30_000n);
    const history = await tollbook(['pay', '/history/berlin?days=3', '--scheme', 'upto', '--dir', dir]);
    expect(history.stdout).toContain('{"city":"berlin","days":[{"ago":0,');
    expect(await earned(devnet)).toBe(before + 36_000n);
    const unknown = await tollbook(['pay', `${routes}/nowhere`]);
    expect(unknown).toMatchObject({
      code: 2,
      stdout: expect.stringContaining('404, without a payment on record'),
    });
    const [, upstream = ''] = /^free = \{ "\/" = "(.*)" \}$/m.exec(readFileSync(devnet.config, 'utf8')) ?? [];
    expect((await fetch(`${upstream}/weather/berlin`)).status).toBe(401);
  });

  test('seals its ledger under the key it describes', async () => {
    const key = parseVerifierKey(devnet.checkpoint_public_key);
    await eventually(async () => {
      const note = await (await fetch(`${url}/log/checkpoint`)).text();
      expect(openCheckpoint(note, key).size).toBeGreaterThan(6);
    });
  });

  test('writes to .tollbook/devnet.json what a client needs', async () => {
    const routes = `http://127.0.0.1:${port + 3}`;
    expect(devnet).toMatchObject({ gateway_url: url, routes_url: routes });
    expect(devnet).toMatchObject({ chain_id: 84_532, network: 'eip155:84532' });
    const delegated = 'delegated_caller_signature';
    expect(devnet.jobs).toEqual([
      { service_id: 1, job_index: 0, invocation_mode: 'public_paid', delivery: 'push' },
      { service_id: 1, job_index: 1, invocation_mode: 'public_paid', delivery: 'push' },
      { service_id: 1, job_index: 2, invocation_mode: 'disabled', delivery: 'push' },
      {
        service_id: 1,
        job_index: 3,
        invocation_mode: 'restricted_paid',
        auth_mode: 'payer_is_caller',
        delivery: 'push',
      },
      {
        service_id: 1,
        job_index: 4,
        invocation_mode: 'restricted_paid',
        auth_mode: delegated,
        delivery: 'push',
      },
      { service_id: 1, job_index: 5, invocation_mode: 'disabled', auth_mode: delegated, delivery: 'push' },
      { service_id: 2, job_index: 0, invocation_mode: 'public_paid', delivery: 'lease' },
      { service_id: 9, job_index: 0, invocation_mode: 'public_paid', delivery: 'top_up' },
      { service_id: 3, job_index: 0, invocation_mode: 'public_paid', delivery: 'route' },
      { service_id: 3, job_index: 1, invocation_mode: 'public_paid', delivery: 'route' },
      { service_id: 3, job_index: 2, invocation_mode: 'public_paid', delivery: 'route' },
      { service_id: 3, job_index: 3, invocation_mode: 'public_paid', delivery: 'route' },
    ]);
    const { callers, payer_private_key: payer } = devnet;
    for (const token of [devnet.token, devnet.second_token]) {
      for (const key of [payer, callers.permitted, callers.refused]) {
        const holder = privateKeyToAddress(key as Hex).toLowerCase() as Address;
        expect(await balanceOf(devnet.rpc_url, token as Address, holder)).toBeGreaterThan(price);
      }
    }
    expect(await getJson(`${devnet.facilitator_url}/supported`)).toMatchObject({ kinds: expect.any(Array) });
    const authorization = `Bearer ${devnet.operator_token}`;
    expect((await fetch(`${url}/operator/dead-letters`, { headers: { authorization } })).status).toBe(200);
    const client = new pg.Client(devnet.database_url);
    await client.connect();
    expect((await client.query('select from tollbook.lane')).rowCount).toBe(1);
    await client.end();
    const env = { TOLLBOOK_RUNNER_TOKEN: devnet.runner_token };
    const { config, warnings } = await loadConfig(devnet.config, env);
    expect(warnings).toEqual([]);
    expect(config.jobs?.acceptedTokens.map(({ asset }) => asset)).toEqual([
      devnet.token,
      devnet.second_token,
      devnet.plain_token,
    ]);
  });

  test('shows for each kind of caller a model request that works as copied', async () => {
    const { routing } = devnet;
    expect(routing).toMatchObject({ free_model: 'devnet-small', paid_model: 'devnet-large' });
    const shown = program.stdout().matchAll(/curl -N (\S+) -H '([^']+)'(?: -H '([^']+)')? -d '([^']+)'/g);
    const answers = await Promise.all(
      [...shown].map(async ([, address = '', ...rest]) => {
        const body = rest.pop() ?? '';
        const headers = rest.flatMap((header) => (header ? [header.split(': ') as [string, string]] : []));
        const answer = await fetch(address, { method: 'POST', headers, body });
        return [answer.status, answer.headers.get('content-type'), await answer.text()];
      }),
    );
    expect(answers).toEqual([
      [200, 'application/json', expect.stringContaining('"content":"hello, model"')],
      [200, 'text/event-stream', expect.stringMatching(/data: \[DONE\]\n\n$/)],
      [402, 'application/json; charset=utf-8', expect.stringContaining('insufficient_funds')],
    ]);
    const authorization = `Bearer ${routing.api_key_expired}`;
    expect((await fetch(`${url}/v1/key`, { headers: { authorization } })).status).toBe(401);
    const credits = await getJson(`${url}/v1/credits`, { authorization: `Bearer ${routing.api_key_funded}` });
    expect(Number(credits['balance'])).toBeGreaterThan(100);
  });

  test('`pay` pays and shows the result', async () => {
    const before = await earned(devnet);
    const { code, stdout } = await tollbook(['pay', '1', '1', 'grüße', '--dir', dir]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/202 accepted: 0x[0-9a-f]{40} paid 0\.000001 USDC in transaction 0x[0-9a-f]{64}/);
    expect(echoed(/^result: (.*)$/m.exec(stdout)?.[1] ?? '')).toBe('grüße');
    expect(await earned(devnet)).toBe(before + 1n);
  });

  test('sells credit for chat to a wallet that pays', async () => {
    const { code, stdout } = await tollbook(['pay', '9', '0', 'credit', '--dir', dir]);
    expect(code).toBe(0);
    const result: unknown = JSON.parse(/^result: (.*)$/m.exec(stdout)?.[1] ?? '{}');
    const account = expect.stringMatching(/^user:[0-9a-f-]{36}$/);
    expect(result).toMatchObject({ account, credited: '10', currency: 'USD' });
  });

  test('`pay` reports why it could not pay', async () => {
    const disabled = await tollbook(['pay', '1', '2', 'x', '--dir', dir]);
    expect(disabled).toMatchObject({ code: 2, stderr: expect.stringContaining('x402_disabled') });
    const missing = await tollbook(['pay', '1', '1', '--dir', dir]);
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('SERVICE JOB') });
    const nowhere = await tollbook(['pay', '1', '1', 'x', '--dir', temporaryFolder()]);
    expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining('npm start') });
  });

  test('writes a configuration with which a second gateway serves the same ledger', async () => {
    const copy = path.join(temporaryFolder(), 'second.toml');
    const text = readFileSync(devnet.config, 'utf8');
    const addresses = new RegExp(`127.0.0.1:(?:${port}|${port + 3})(?=")`, 'g');
    writeFileSync(copy, text.replaceAll(addresses, '127.0.0.1:0'));
    const second = startTollbook(['serve', '--config', copy], {
      DATABASE_URL: devnet.database_url,
      TOLLBOOK_RUNNER_TOKEN: devnet.runner_token,
    });
    const [, address = ''] = await second.says(/"url":"([^"]+)","msg":"listening"/);
    expect(address).not.toBe(url);
    // the development wallet is of `npm start` alone
    expect(await (await fetch(`${address}/sign-in`)).text()).not.toContain('evelopment wallet');
    expect((await fetch(`${address}/devnet/wallet.js`)).status).toBe(404);
    const paid = await paidJob(devnet, address);
    expect(echoed(paid.result.toString())).toBe('hello');
    expect(await getJson(`${url}/x402/receipts/${paid.body.quote_digest}`)).toMatchObject({
      state: 'completed',
    });
    second.kill('SIGTERM');
    expect(await second.ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"msg":"stopped: every request has its answer"'),
    });
  });

  test('refuses a second start in its folder', async () => {
    const { code, stdout, stderr } = await tollbook(['start', '--dir', dir, ...onPort]);
    expect(code).toBe(2);
    expect(stderr).toContain(`already runs in this folder (process ${program.pid})`);
    expect(stdout).toBe('');
    expect(await getJson(`${url}/x402/stats`)).toMatchObject({ status: 'ok' });
  });
});

test('Ctrl-C, even twice, stops every process in order, and the next start continues with the same data', async () => {
  const dir = temporaryFolder();
  const first = await start(dir);
  const devnet = await readDescription(dir);
  const paid = await paidJob(devnet);
  const auth = { authorization: `Bearer ${paid.body.receipt_token}` };
  const receipt = await getJson(paid.body.receipt_url, auth);
  expect(receipt).toMatchObject({ state: 'completed', result: { body_base64: expect.any(String) } });
  const before = await counters();
  const processIds = processesAround(dir);
  expect(processIds.length > 5).toBe(process.platform === 'linux');
  first.kill('SIGINT');
  await first.says(/SIGINT: stopping/);
  first.kill('SIGINT');
  expect(await first.ended).toMatchObject({ code: 0, stderr: '' });
  await expectNoProcesses(dir, processIds);

  await start(dir);
  const expected = Object.entries(onePaidCall).map(([name, more]) => [name, (before[name] ?? 0) + more]);
  expect(await counters()).toEqual({ ...before, ...Object.fromEntries(expected) });
  // the log has grown, and its proof of the settlement with it
  const { log_proof: _, log_proof_reason: __, ...kept } = receipt;
  expect(await getJson(paid.body.receipt_url, auth)).toMatchObject(kept);
  const again = await readDescription(dir);
  expect(again).toEqual({ ...devnet, rpc_url: again.rpc_url, facilitator_url: again.facilitator_url });
  expect(await earned(again)).toBe(3n * price);
});

test('--fresh starts with empty data', async () => {
  const dir = temporaryFolder();
  const first = await start(dir);
  const { body } = await paidJob(await readDescription(dir));
  first.kill('SIGTERM');
  expect(await first.ended).toMatchObject({ code: 0 });

  await start(dir, /Try next/, ['--fresh']);
  expect(await counters()).toMatchObject({ ...onePaidCall, replay_denied: 0 });
  expect((await fetch(body.receipt_url)).status).toBe(404);
  expect(await earned(await readDescription(dir))).toBe(price);
});

test('a start that is killed leaves no process, and the next start continues with its data', async () => {
  const dir = temporaryFolder();
  const first = await start(dir);
  const { body } = await paidJob(await readDescription(dir));
  const processIds = processesAround(dir);
  expect(processIds.length > 5).toBe(process.platform === 'linux');
  first.kill('SIGKILL');
  await expectNoProcesses(dir, processIds);

  await start(dir);
  expect(await getJson(body.receipt_url)).toMatchObject({ state: 'completed', paid: true });
  expect(await counters()).toMatchObject({ accepted: 3, completed: 3 });
});

test('a port that is taken is reported, and no process is left running', async () => {
  const dir = temporaryFolder();
  const taken = createServer().listen(port, '127.0.0.1');
  await once(taken, 'listening');
  onTestFinished(async () => {
    taken.close();
    await once(taken, 'close');
  });
  onTestFinished(() => endProcessesAround(dir));
  const { code, stderr } = await tollbook(['start', '--dir', dir, ...onPort]);
  expect(code).toBe(2);
  expect(stderr).toContain(`Port ${port} is in use`);
  await expectNoProcesses(dir, []);
});

test('Ctrl-C during a start stops the processes that were started', async () => {
  const dir = temporaryFolder();
  const program = await start(dir, /database:/);
  program.kill('SIGINT');
  expect(await program.ended).toMatchObject({ code: 0 });
  await expectNoProcesses(dir, []);
});

async function receiptOf(rpcUrl: string, transaction: string): Promise<unknown> {
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'eth_getTransactionReceipt',
      params: [transaction],
    }),
  });
  return ((await response.json()) as { result: unknown }).result;
}
