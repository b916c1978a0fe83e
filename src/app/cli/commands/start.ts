import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { payForOneJob } from '../../../devnet/client.ts';
import { openDemoUser } from '../../../devnet/demo-user.ts';
import { type DevnetDescription, earlierSecrets, writeDescription } from '../../../devnet/description.ts';
import { errorCode } from '../../../devnet/error-code.ts';
import { createDevelopmentWallet } from '../../../devnet/wallet/wallet.ts';
import { lockFolder } from '../../../devnet/folder-lock.ts';
import { startEmbeddedPostgres } from '../../../devnet/postgres.ts';
import { createLogger } from '../../logger.ts';
import { startGateway } from '../../start.ts';
import { migrate } from '../../../ledger/store/migrations.ts';
import { readOptions, readPort } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { requireFreePorts } from '../../../devnet/ports.ts';
import { demoOperator, describe, devnetSecrets } from '../start/description.ts';
import { developmentGateway, removeState, routesPort, unfinishedMark } from '../start/development-config.ts';
import { startDevnetProcess } from '../start/devnet-process.ts';
import { notDone, say, untilSignal } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { processEnvironment } from '../../../base/config/environment.ts';

/** Runs everything on this machine, pays for one job as a check, and runs until Ctrl-C. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(appCommands.start, args);
  const port = readPort('--port', values.port);
  const chainPort = values['chain-port'];
  const chain = chainPort === undefined ? [] : [readPort('--chain-port', chainPort)];
  const signal = untilSignal();
  const dir = path.resolve(values.dir);
  await mkdir(dir, { recursive: true });
  const lock = lockFolder(dir);
  if (lock.kind === 'taken')
    return notDone(
      `Tollbook already runs in this folder (process ${lock.pid}). Stop it first, or use another folder: npm start -- --dir FOLDER`,
    );
  const stops: (() => Promise<unknown>)[] = [async () => lock.unlock()];
  try {
    await requireFreePorts([
      { part: 'gateway', port, option: '--port' },
      { part: 'paid routes', port: routesPort(port), option: '--port' },
      ...chain.map((one) => ({ part: 'chain', port: one, option: '--chain-port' })),
    ]);
    if (values.fresh) removeState(dir);
    removeUnfinishedDemoData(dir);
    if (!values['demo-data'] || (await makeDemoData(dir, values.port, signal)))
      await startAll(dir, { port: values.port, chain: chain[0] }, stops, signal);
    say(`${await signal}: stopping`);
    return exitCodes.done;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

async function startAll(
  dir: string,
  { port, chain }: { readonly port: string; readonly chain: number | undefined },
  stops: (() => Promise<unknown>)[],
  signal: Promise<unknown>,
): Promise<void> {
  const step = stopwatch();
  const postgres = await startEmbeddedPostgres({ dir: path.join(dir, 'postgres'), durable: true });
  stops.push(() => postgres.stop());
  const databaseUrl = postgres.url('postgres');
  await migrate(databaseUrl);
  step('database: embedded PostgreSQL, migrated');

  const devnet = await startDevnetProcess(dir, stops, chain);
  step(
    `devnet: chain ${devnet.chainId} at ${devnet.rpcUrl}, facilitator, example runner, model upstream, API`,
  );

  const config = await developmentGateway(dir, port, devnet);
  const logFile = path.join(dir, 'gateway.log');
  const logger = createLogger(config.logLevel, logFile);
  const pageAddition = await createDevelopmentWallet(devnet);
  const gateway = await startGateway({ config, databaseUrl, logger, pageAddition }).catch(
    explainTakenPort(port),
  );
  stops.push(() => gateway.stop());
  const secrets = await devnetSecrets(dir, databaseUrl);
  step(
    `gateway: listening on ${gateway.url}, paid routes on ${gateway.routesUrl}, log in ${path.relative('.', logFile)}`,
  );
  const mailDir = config.identity?.mailDir ?? path.join(dir, 'mail');
  const { demo_user: earlier } = await earlierSecrets(dir);
  const demoUser = await openDemoUser({ gatewayUrl: gateway.url, mailDir }, earlier);
  step(`demo user: ${demoUser.email}, signed up and confirmed`);
  const operator = await demoOperator(dir, databaseUrl, config, demoUser);
  const given = { databaseUrl, gateway, demoUser, demoOperator: operator, ...secrets };
  const description = describe(dir, config, devnet, given);
  await writeDescription(dir, description);

  await Promise.race([selfCheck(description, step), signal]);
  say(whatNext(dir, description));
}

function explainTakenPort(port: string) {
  return (error: unknown): never => {
    if (errorCode(error) !== 'EADDRINUSE') throw error;
    const advice =
      'perhaps by a Tollbook in another folder: stop that one, or choose another port with --port';
    throw new Error(`Port ${port}, or that of the paid routes, is in use, ${advice}.`, { cause: error });
  };
}

/** Pays for a job with the official x402 client. */
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

/** Prints one line for each step, with its duration. */
function stopwatch(): (text: string) => void {
  let last = performance.now();
  return (text) => {
    const now = performance.now();
    say(`${`${Math.round(now - last)} ms`.padStart(9)}  ${text}`);
    last = now;
  };
}

const program = new URL('../start/demo/process.ts', import.meta.url);

/** Deletes the rest of an interrupted making of demo data: its clocks are wrong. */
function removeUnfinishedDemoData(dir: string): void {
  if (!existsSync(path.join(dir, unfinishedMark))) return;
  say('The demo data of the last start was not finished: its state is deleted.');
  removeState(dir);
}

/**
 * Makes a month of activity in a folder without state, in a separate process, since the clock of that process is not the machine's.
 * A folder with state stays unchanged. False where it was stopped before its end; the folder has no state then.
 * @throws where it fails
 */
async function makeDemoData(dir: string, port: string, signal: Promise<unknown>): Promise<boolean> {
  if (existsSync(path.join(dir, 'postgres'))) {
    say('This folder has data already, which stays unchanged: --fresh --demo-data makes demo data instead.');
    return true;
  }
  say('Making a month of demo data, which takes a minute or two:');
  const mark = path.join(dir, unfinishedMark);
  writeFileSync(mark, '');
  const { PATH = '' } = processEnvironment();
  const child = spawn(process.execPath, [fileURLToPath(program), '--dir', dir, '--port', port], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { PATH },
    // Ctrl-C in the terminal reaches it by this process alone
    detached: true,
  });
  const ended = once(child, 'exit').then(([code]) => ({ code: code as number | null }));
  const first = await Promise.race([ended, signal.then(() => undefined)]);
  if (!first) {
    child.kill('SIGTERM');
    await ended;
  }
  if (first?.code === 0) {
    rmSync(mark);
    return true;
  }
  removeState(dir);
  if (first) throw new Error('the demo data could not be made, and its state was deleted: see above');
  return false;
}

/** What to try next, as commands to copy. */
function whatNext(dir: string, devnet: DevnetDescription): string {
  const relative = path.relative('.', dir);
  const isDefault = relative === '.tollbook';
  const { gateway_url: url, routes_url: routesUrl } = devnet;
  return `
Open ${url} in a browser:
  demo login     ${demoLogin(devnet)}
  demo wallet    "Continue with your wallet" on the sign-in page; test tokens, on this devnet only
  or sign up: mails are files in ${relative}/mail
The operators' console is at ${url}/console:
  demo login     the same; then the code that this prints: npm run tollbook -- operators code${isDefault ? '' : ` --dir ${relative}`}

Try next, from another shell:
  npm run pay -- 1 0 'your text' ${isDefault ? '' : ` --dir ${relative}`}           pay for a job and read its result
  npm run pay -- 9 0 credit${isDefault ? '' : ` --dir ${relative}`}                 buy credit for chat, for the account of the paying wallet
  npm run pay -- /weather/berlin${isDefault ? '' : ` --dir ${relative}`}             pay for a path of an API and read its answer
  curl -i ${routesUrl}/weather/berlin    its offer: 402
  curl ${url}/x402/jobs/1/0/price    what a job costs
  curl ${url}/x402/stats             the public counters
  ${relative}/devnet.json                     keys and addresses for clients
${modelCalls(devnet)}
Ctrl-C stops everything; the next start continues with this state, \`npm start -- --fresh\` deletes its state first.`;
}

function demoLogin({ demo_user: { email, password } }: DevnetDescription): string {
  return password === undefined
    ? `${email}, whose password was changed: "Forgotten?" on the sign-in page sets another one`
    : `${email}, password ${password}`;
}

/** One request for each kind of caller. */
function modelCalls({ gateway_url: url, routing }: DevnetDescription): string {
  const { free_model: free, paid_model: paid } = routing;
  const call = (what: string, body: object, key?: string): string => {
    const json = JSON.stringify({ ...body, messages: [{ role: 'user', content: 'hello, model' }] });
    const bearer = key === undefined ? '' : ` -H 'authorization: Bearer ${key}'`;
    return `  # ${what}\n  curl -N ${url}/v1/chat/completions -H 'content-type: application/json'${bearer} -d '${json}'`;
  };
  return `
Ask a model, with any OpenAI client and the base URL ${url}/v1:
${call('without a credential, on a model of the free tier', { model: free })}
${call('an API key with credit, as a stream', { model: paid, stream: true }, routing.api_key_funded)}
${call('an API key without credit, on a paid model: 402', { model: paid }, routing.api_key_empty)}
`;
}
