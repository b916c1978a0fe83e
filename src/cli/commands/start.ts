import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { signerOf } from '../../app/log.ts';
import { processEnvironment } from '../../config/environment.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/config.ts';
import { payForOneJob } from '../../devnet/client.ts';
import { type DemoKeys, demoKeys } from '../../devnet/demo-keys.ts';
import { type DevnetDescription, earlierSecrets, writeDescription } from '../../devnet/description.ts';
import { spendTable } from '../../devnet/prepaid-contract.ts';
import type { Devnet } from '../../devnet/devnet.ts';
import { errorCode } from '../../devnet/error-code.ts';
import { lockFolder } from '../../devnet/folder-lock.ts';
import { topUpTables } from '../../devnet/top-up.ts';
import { startEmbeddedPostgres } from '../../devnet/postgres.ts';
import { jobKey } from '../../domain/payments/job.ts';
import { operatorScopes } from '../../domain/identity/operator-scope.ts';
import { findOperator, issueOperatorToken } from '../../identity/operator-tokens.ts';
import { createLogger, startGateway } from '../../app/start.ts';
import { openDatabase, openPool } from '../../store/database.ts';
import { openLane } from '../../store/lane.ts';
import { migrate } from '../../store/migrations.ts';
import { fail, say, untilSignal } from '../terminal.ts';

type DevnetFacts = Omit<Devnet, 'stop'>;

const identitySecretFile = 'identity.secret';

/** Where the development config listens. */
const defaultPort = '8402';
const developmentConfig = new URL('../../../config/dev.toml', import.meta.url);
const operatorKeyFile = 'operator.key';
const logKeyFile = 'log.key';
const thisProgram = new URL('../tollbook.ts', import.meta.url);

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
  step(`devnet: chain ${devnet.chainId} at ${devnet.rpcUrl}, facilitator, example runner, model upstream`);

  const config = await developmentGateway(dir, port, devnet);
  const logFile = path.join(dir, 'gateway.log');
  const logger = createLogger(config.logLevel, logFile);
  const gateway = await startGateway({ config, databaseUrl, logger }).catch(explainTakenPort(port));
  stops.push(() => gateway.stop());
  const secrets = await devnetSecrets(dir, databaseUrl);
  const description = describe(dir, config, devnet, { databaseUrl, gatewayUrl: gateway.url, ...secrets });
  await writeDescription(dir, description);
  step(`gateway: listening on ${gateway.url}, log in ${path.relative('.', logFile)}`);

  await Promise.race([selfCheck(description, step), signal]);
  say(whatNext(dir, description));
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

function whatNext(dir: string, devnet: DevnetDescription): string {
  const relative = path.relative('.', dir);
  const isDefault = relative === '.tollbook';
  const { gateway_url: url } = devnet;
  return `
Try next, from another shell:
  npm run pay -- 1 0 'your words'${isDefault ? '' : ` --dir ${relative}`}           pay for a job and read its result
  npm run pay -- 9 0 credit${isDefault ? '' : ` --dir ${relative}`}                 buy credit for chat, for the account of the paying wallet
  curl ${url}/x402/jobs/1/0/price    what a job costs
  curl ${url}/x402/stats             the public counters
  ${relative}/devnet.json                     keys and addresses for any client
${modelCalls(devnet)}
Ctrl-C stops everything; the next start goes on from here, \`npm start -- --fresh\` begins anew.`;
}

/** A request of each kind of caller, to copy. */
function modelCalls({ gateway_url: url, routing }: DevnetDescription): string {
  const { free_model: free, paid_model: paid } = routing;
  const call = (what: string, body: object, key?: string): string => {
    const json = JSON.stringify({ ...body, messages: [{ role: 'user', content: 'hello, model' }] });
    const bearer = key === undefined ? '' : ` -H 'authorization: Bearer ${key}'`;
    return `  # ${what}\n  curl -N ${url}/v1/chat/completions -H 'content-type: application/json'${bearer} -d '${json}'`;
  };
  return `
Ask a model; any client of OpenAI's does, with the base URL ${url}/v1:
${call('anybody, on a model of the free tier', { model: free })}
${call('a key with credit, as a stream', { model: paid, stream: true }, routing.api_key_funded)}
${call('a key without credit, on a model that costs: 402', { model: paid }, routing.api_key_empty)}
`;
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
    .replaceAll('http://127.0.0.1:8414/calls', devnet.runnerUrl)
    .replaceAll('http://127.0.0.1:8415/v1', devnet.modelUpstreamUrl);
  const file = path.join(dir, 'gateway.toml');
  await keepSecret(dir, identitySecretFile);
  await keepSecret(dir, logKeyFile);
  // by its whole path: the config may be copied elsewhere
  const keyFile = path.resolve(dir, operatorKeyFile);
  await writeFile(keyFile, devnet.prepaid.operatorPrivateKey, { mode: 0o600 });
  const credits = spendTable(devnet, devnet.prepaid, keyFile);
  const tables = [identityTable(dir, devnet), credits, topUpTables, logTable(dir)];
  await writeFile(file, [text, ...tables].join(''));
  const { config } = await loadConfig(file, {
    ...processEnvironment(),
    TOLLBOOK_RUNNER_TOKEN: devnet.runnerToken,
  });
  return config;
}

/** People's accounts, with what only a folder of its own can hold: a secret, and mails as files. */
function identityTable(dir: string, { chainId, rpcUrl }: DevnetFacts): string {
  const at = (name: string): string => JSON.stringify(path.join(dir, name));
  return `
[identity]
secret_file = ${at(identitySecretFile)}
siwe_chain_id = ${chainId}
siwe_rpc_url = "${rpcUrl}"
mailer = "folder"
mail_dir = ${at('mail')}
`;
}

/** The sealed log, as old as the ledger. */
function logTable(dir: string): string {
  return `
[log]
origin = "tollbook.devnet/log"
key_file = ${JSON.stringify(path.join(dir, logKeyFile))}
`;
}

/** 32 random bytes, as they were made with the first start in this folder. */
async function keepSecret(dir: string, file: string): Promise<void> {
  const secret = randomBytes(32).toString('base64');
  try {
    await writeFile(path.join(dir, file), `${secret}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

interface DevnetSecrets {
  /** Allows everything. */
  readonly operatorToken: string;
  readonly keys: DemoKeys;
}

/** Tokens and keys, kept from the last start in this folder while they still hold. */
async function devnetSecrets(dir: string, url: string): Promise<DevnetSecrets> {
  const pool = openPool({ url, maxConnections: 1 });
  const lane = openLane({ url, flushers: 1 });
  const ledger = { pool, db: openDatabase(pool), lane };
  try {
    const { operator_token: earlier, routing } = await earlierSecrets(dir);
    const isKept = earlier !== undefined && (await findOperator(ledger, earlier)) !== undefined;
    const operatorToken = isKept
      ? earlier
      : (await issueOperatorToken(ledger, { name: 'devnet', scopes: operatorScopes })).token;
    return { operatorToken, keys: await demoKeys(ledger, routing) };
  } finally {
    await lane.close();
    await pool.end();
  }
}

function describe(
  dir: string,
  config: Config,
  devnet: DevnetFacts,
  given: DevnetSecrets & { readonly databaseUrl: string; readonly gatewayUrl: string },
): DevnetDescription {
  return {
    gateway_url: given.gatewayUrl,
    config: path.relative('.', path.join(dir, 'gateway.toml')),
    rpc_url: devnet.rpcUrl,
    chain_id: devnet.chainId,
    network: devnet.network,
    token: devnet.token,
    second_token: devnet.secondToken,
    pay_to: devnet.payTo,
    facilitator_url: devnet.facilitatorUrl,
    database_url: given.databaseUrl,
    runner_token: devnet.runnerToken,
    operator_token: given.operatorToken,
    checkpoint_public_key: config.log ? signerOf(config.log).verifierKey : '',
    payer_private_key: devnet.payerPrivateKey,
    callers: devnet.callers,
    parity_contract: devnet.parityContract,
    credits_contract: devnet.prepaid.prepaidContract,
    operator: devnet.prepaid.operator,
    commitment: devnet.prepaid.commitment,
    spending_private_key: devnet.prepaid.spendingPrivateKey,
    jobs: describeJobs(config),
    routing: {
      ...describeModels(config),
      ...given.keys,
      siwe_domain: config.identity?.siweDomain ?? new URL(given.gatewayUrl).host,
      mail_dir: path.relative('.', config.identity?.mailDir ?? path.join(dir, 'mail')),
    },
  };
}

function describeJobs({ jobs, topUps, runners }: Config): DevnetDescription['jobs'] {
  const leased = new Set(runners.filter(({ mode }) => mode === 'lease').flatMap(({ services }) => services));
  const topUpJobs = new Set(topUps.map(jobKey));
  const deliveryOf = (key: string, serviceId: number) =>
    topUpJobs.has(key) ? 'top_up' : leased.has(serviceId) ? 'lease' : 'push';
  return [...(jobs?.jobPrices.keys() ?? [])].map((key) => {
    const [serviceId, jobIndex] = key.split('/').map(Number) as [number, number];
    const policy = jobs?.jobPolicies.get(key);
    return {
      service_id: serviceId,
      job_index: jobIndex,
      invocation_mode: policy?.invocationMode ?? 'disabled',
      ...(policy?.authMode && { auth_mode: policy.authMode }),
      delivery: deliveryOf(key, serviceId),
    };
  });
}

function describeModels({
  chat: routing,
}: Config): Pick<DevnetDescription['routing'], 'free_model' | 'paid_model'> {
  const free = routing?.models.find(({ price }) => price === undefined);
  const paid = routing?.models.find(({ price }) => price !== undefined);
  if (!free || !paid) throw new Error('the development config has no model of each kind');
  return { free_model: free.name, paid_model: paid.name };
}

const stateFiles = [
  'postgres',
  'chain.json',
  'devnet.json',
  'gateway.toml',
  'gateway.log',
  identitySecretFile,
  operatorKeyFile,
  logKeyFile,
  'mail',
];

function removeState(dir: string): void {
  for (const name of stateFiles) rmSync(path.join(dir, name), { recursive: true, force: true });
}
