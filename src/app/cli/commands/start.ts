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
import { makeDemoData, removeUnfinishedDemoData } from '../start/demo-data.ts';
import { developmentGateway, removeState } from '../start/development-config.ts';
import { startDevnetProcess } from '../start/devnet-process.ts';
import { whatNext } from '../start/next-steps.ts';
import { notDone, say, untilSignal } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';

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
  step(`devnet: chain ${devnet.chainId} at ${devnet.rpcUrl}, facilitator, example runner, model upstream`);

  const config = await developmentGateway(dir, port, devnet);
  const logFile = path.join(dir, 'gateway.log');
  const logger = createLogger(config.logLevel, logFile);
  const pageAddition = await createDevelopmentWallet(devnet);
  const gateway = await startGateway({ config, databaseUrl, logger, pageAddition }).catch(
    explainTakenPort(port),
  );
  stops.push(() => gateway.stop());
  const secrets = await devnetSecrets(dir, databaseUrl);
  step(`gateway: listening on ${gateway.url}, log in ${path.relative('.', logFile)}`);
  const mailDir = config.identity?.mailDir ?? path.join(dir, 'mail');
  const { demo_user: earlier } = await earlierSecrets(dir);
  const demoUser = await openDemoUser({ gatewayUrl: gateway.url, mailDir }, earlier);
  step(`demo user: ${demoUser.email}, signed up and confirmed`);
  const operator = await demoOperator(dir, databaseUrl, config, demoUser);
  const given = { databaseUrl, gatewayUrl: gateway.url, demoUser, demoOperator: operator, ...secrets };
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
    throw new Error(`Port ${port} is in use, ${advice}.`, { cause: error });
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
