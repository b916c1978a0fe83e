import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/config.ts';
import { payForOneJob } from '../devnet/client.ts';
import { type DevnetDescription, earlierOperatorToken, writeDescription } from '../devnet/description.ts';
import type { Devnet } from '../devnet/devnet.ts';
import { errorCode } from '../devnet/error-code.ts';
import { lockFolder } from '../devnet/folder-lock.ts';
import { startEmbeddedPostgres } from '../devnet/postgres.ts';
import { operatorScopes } from '../domain/operator-scope.ts';
import { findOperator, issueOperatorToken } from '../gateway/operator-tokens.ts';
import { createLogger, startGateway } from '../main.ts';
import { openDatabase, openPool } from '../store/database.ts';
import { openLane } from '../store/lane.ts';
import { migrate } from '../store/migrations.ts';
import { fail, say, untilSignal } from './terminal.ts';

type DevnetFacts = Omit<Devnet, 'stop'>;

/** Where the development config listens. */
const defaultPort = '8402';
const developmentConfig = new URL('../../config/dev.toml', import.meta.url);
const thisProgram = new URL('tollbook.ts', import.meta.url);

/** Runs everything on this machine, pays for one job to prove the way, and serves until Ctrl-C. */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      dir: { type: 'string', default: '.tollbook' },
      fresh: { type: 'boolean', default: false },
      port: { type: 'string', default: defaultPort },
    },
  });
  const signal = untilSignal();
  const dir = path.resolve(values.dir);
  await mkdir(dir, { recursive: true });
  const lock = lockFolder(dir);
  if (lock.kind === 'taken') {
    fail(
      `Tollbook is already running here (process ${lock.pid}). Stop it first, or use another folder: npm start -- --dir FOLDER`,
    );
    return 1;
  }
  const stops: (() => Promise<unknown>)[] = [async () => lock.unlock()];
  try {
    if (values.fresh) removeState(dir);
    await startAll(dir, values.port, stops, signal);
    say(`${await signal}: stopping`);
    return 0;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

async function startAll(
  dir: string,
  port: string,
  stops: (() => Promise<unknown>)[],
  signal: Promise<unknown>,
): Promise<void> {
  const step = stopwatch();
  const postgres = await startEmbeddedPostgres({ dir: path.join(dir, 'postgres'), durable: true });
  stops.push(() => postgres.stop());
  const databaseUrl = postgres.url('postgres');
  await migrate(databaseUrl);
  step('database: embedded PostgreSQL, migrated');

  const devnet = await startDevnetProcess(dir, stops);
  step(`devnet: chain ${devnet.chainId} at ${devnet.rpcUrl}, facilitator, example runner`);

  const config = await developmentGateway(dir, port, devnet);
  const logFile = path.join(dir, 'gateway.log');
  const logger = createLogger(config.logLevel, logFile);
  const gateway = await startGateway({ config, databaseUrl, logger }).catch(explainTakenPort(port));
  stops.push(() => gateway.stop());
  const operatorToken = await devnetOperatorToken(dir, databaseUrl);
  const description = describe(dir, config, devnet, { databaseUrl, operatorToken, gatewayUrl: gateway.url });
  await writeDescription(dir, description);
  step(`gateway: listening on ${gateway.url}, log in ${path.relative('.', logFile)}`);

  await Promise.race([selfCheck(description, step), signal]);
  say(whatNext(dir, gateway.url));
}

function explainTakenPort(port: string) {
  return (error: unknown): never => {
    if (errorCode(error) !== 'EADDRINUSE') throw error;
    const advice = 'perhaps by a Tollbook in another folder: stop that first, or choose another with --port';
    throw new Error(`Port ${port} is taken, ${advice}.`, { cause: error });
  };
}

/** Pays for a job with the official client, as a stranger would. */
async function selfCheck(devnet: DevnetDescription, step: (text: string) => void): Promise<void> {
  say('\nPaid self-check: job 1/0 with the body "hello, runner"');
  const { result } = await payForOneJob({
    gatewayUrl: devnet.gateway_url,
    privateKey: devnet.payer_private_key as `0x${string}`,
    serviceId: 1,
    jobIndex: 0,
    body: 'hello, runner',
    onStep: step,
  });
  step(`runner's result: ${result.toString('utf8')}`);
  step('self-check passed');
}

/** One line a step with the time it took. */
function stopwatch(): (text: string) => void {
  let last = performance.now();
  return (text) => {
    const now = performance.now();
    say(`${`${Math.round(now - last)} ms`.padStart(9)}  ${text}`);
    last = now;
  };
}

function whatNext(dir: string, url: string): string {
  const relative = path.relative('.', dir);
  const isDefault = relative === '.tollbook';
  return `
Try next, from another shell:
  npm run pay -- 1 0 'your words'${isDefault ? '' : ` --dir ${relative}`}           pay for a job and read its result
  curl ${url}/x402/jobs/1/0/price    what a job costs
  curl ${url}/x402/stats             the public counters
  ${relative}/devnet.json                     keys and addresses for any client
Ctrl-C stops everything; the next start goes on from here, \`npm start -- --fresh\` begins anew.`;
}

async function startDevnetProcess(dir: string, stops: (() => Promise<unknown>)[]): Promise<DevnetFacts> {
  const { PATH = '' } = processEnvironment();
  const child = spawn(process.execPath, [fileURLToPath(thisProgram), 'devnet', '--dir', dir], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { PATH },
    // a Ctrl-C of the terminal is ours: the devnet ends after the gateway, when we say so
    detached: true,
  });
  stops.push(() => endChild(child));
  const ready = once(child, 'message') as Promise<[DevnetFacts]>;
  const ended = once(child, 'exit').then(() => {
    throw new Error('the devnet ended before it was ready');
  });
  const [facts] = await Promise.race([ready, ended]);
  ended.catch(() => {});
  return facts;
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

/** The development config with this devnet's addresses, kept as a file that a second gateway can serve as well. */
async function developmentGateway(dir: string, port: string, devnet: DevnetFacts): Promise<Config> {
  const template = await readFile(developmentConfig, 'utf8');
  const text = template
    .replaceAll(`127.0.0.1:${defaultPort}`, `127.0.0.1:${port}`)
    .replaceAll('http://127.0.0.1:8412', devnet.rpcUrl)
    .replaceAll('http://127.0.0.1:8413', devnet.facilitatorUrl)
    .replaceAll('http://127.0.0.1:8414/calls', devnet.runnerUrl);
  const file = path.join(dir, 'gateway.toml');
  await writeFile(file, text);
  const { config } = await loadConfig(file, {
    ...processEnvironment(),
    TOLLBOOK_RUNNER_TOKEN: devnet.runnerToken,
  });
  return config;
}

/** A token that allows everything, kept from the last start in this folder while it still holds. */
async function devnetOperatorToken(dir: string, url: string): Promise<string> {
  const pool = openPool({ url, maxConnections: 1 });
  const lane = openLane({ url, flushers: 1 });
  const ledger = { pool, db: openDatabase(pool), lane };
  try {
    const earlier = await earlierOperatorToken(dir);
    if (earlier !== undefined && (await findOperator(ledger, earlier))) return earlier;
    return (await issueOperatorToken(ledger, { name: 'devnet', scopes: operatorScopes })).token;
  } finally {
    await lane.close();
    await pool.end();
  }
}

function describe(
  dir: string,
  config: Config,
  devnet: DevnetFacts,
  {
    databaseUrl,
    operatorToken,
    gatewayUrl,
  }: { databaseUrl: string; operatorToken: string; gatewayUrl: string },
): DevnetDescription {
  const leased = new Set(
    config.runners.filter(({ mode }) => mode === 'lease').flatMap(({ services }) => services),
  );
  return {
    gateway_url: gatewayUrl,
    config: path.relative('.', path.join(dir, 'gateway.toml')),
    rpc_url: devnet.rpcUrl,
    chain_id: devnet.chainId,
    network: devnet.network,
    token: devnet.token,
    second_token: devnet.secondToken,
    pay_to: devnet.payTo,
    facilitator_url: devnet.facilitatorUrl,
    database_url: databaseUrl,
    runner_token: devnet.runnerToken,
    operator_token: operatorToken,
    payer_private_key: devnet.payerPrivateKey,
    callers: devnet.callers,
    parity_contract: devnet.parityContract,
    jobs: [...(config.x402?.prices.keys() ?? [])].map((key) => {
      const [serviceId, jobIndex] = key.split('/').map(Number) as [number, number];
      const policy = config.x402?.policies.get(key);
      return {
        service_id: serviceId,
        job_index: jobIndex,
        invocation_mode: policy?.invocationMode ?? 'disabled',
        ...(policy?.authMode && { auth_mode: policy.authMode }),
        delivery: leased.has(serviceId) ? ('lease' as const) : ('push' as const),
      };
    }),
  };
}

const stateFiles = ['postgres', 'chain.json', 'devnet.json', 'gateway.toml', 'gateway.log'];

function removeState(dir: string): void {
  for (const name of stateFiles) rmSync(path.join(dir, name), { recursive: true, force: true });
}
