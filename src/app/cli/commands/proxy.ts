import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { readDatabaseUrl } from '../../../base/config/database-url.ts';
import { processEnvironment } from '../../../base/config/environment.ts';
import { loadConfig } from '../../../base/config/load.ts';
import { privateBaseUrl } from '../../../base/config/urls.ts';
import { address, priceUsd } from '../../../base/config/values.ts';
import { patternFault } from '../../../base/values/route-pattern.ts';
import { ArgumentError, readOptions, readPort } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { notDone, say, untilSignal } from '../../../base/terminal/terminal.ts';
import { lockFolder } from '../../../devnet/folder-lock.ts';
import { requireFreePorts } from '../../../devnet/ports.ts';
import { startEmbeddedPostgres } from '../../../devnet/postgres.ts';
import { pause } from '../../../base/runtime/pause.ts';
import { migrate } from '../../../ledger/store/migrations.ts';
import { createLogger } from '../../logger.ts';
import { startGateway } from '../../start.ts';
import { appCommands } from '../descriptions.ts';
import { checkValue } from '../start/check-value.ts';
import { keepSecret, secretAt } from '../start/development-config.ts';
import { startDevnetProcess, type DevnetFacts } from '../start/devnet-process.ts';
import { type ChosenNetwork, chooseNetwork } from '../start/preset-options.ts';
import {
  allMethods,
  type SellerConfig,
  sellerConfig,
  type SoldApi,
  type SoldRoute,
} from '../start/seller-config.ts';

/** Where the money comes from. */
interface Payment extends Pick<SellerConfig, 'payTo' | 'network' | 'rpcUrl' | 'token' | 'facilitatorUrl'> {
  /** The network, for people. */
  readonly place: string;
}

interface Request {
  readonly sold: SoldApi;
  /** Of the gateway. */
  readonly port: string;
  readonly dir: string;
  /** Undefined with a devnet, which has its own. */
  readonly payment: Payment | undefined;
}

/** Puts a price on an HTTP API, with a database of its own, until Ctrl-C. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const request = readRequest(args);
  const signal = untilSignal();
  const dir = path.resolve(request.dir);
  await mkdir(dir, { recursive: true });
  const lock = lockFolder(dir);
  if (lock.kind === 'taken')
    return notDone(
      `Tollbook already runs in this folder (process ${lock.pid}). Stop it first, or use another folder: --dir FOLDER`,
    );
  const stops: (() => Promise<unknown>)[] = [async () => lock.unlock()];
  try {
    await requireFreePorts([
      { part: 'routes', port: Number(request.sold.port), option: '--port' },
      { part: 'gateway', port: Number(request.port), option: '--gateway-port' },
    ]);
    await startProxy(dir, request, stops);
    say(`${await signal}: stopping`);
    return exitCodes.done;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

async function startProxy(dir: string, request: Request, stops: (() => Promise<unknown>)[]): Promise<void> {
  const databaseUrl = await openDatabase(dir, stops);
  await migrate(databaseUrl);
  const devnet = request.payment ? undefined : await startDevnetProcess(dir, stops, undefined);
  const payment = request.payment ?? ofDevnet(devnet);
  const file = await writeConfig(dir, request, payment);
  const { config, warnings } = await loadConfig(file, processEnvironment());
  for (const warning of warnings) say(`Warning: ${warning}`);
  const logFile = path.join(dir, 'proxy.log');
  const gateway = await startGateway({
    config,
    databaseUrl,
    logger: createLogger(config.logLevel, logFile),
  });
  stops.push(() => gateway.stop());
  const { routesUrl = '' } = gateway;
  say(whatIsSold(routesUrl, gateway.url, request.sold, payment, file, logFile));
  if (devnet) await payOnce(routesUrl, request.sold.routes, devnet);
  else await warnOfPeers(gateway.url, payment, logFile);
}

const peersPatienceMs = 10_000;
const askEveryMs = 500;

/** A seller who sees only this terminal must know that clients cannot pay yet. */
async function warnOfPeers(
  gatewayUrl: string,
  { facilitatorUrl, rpcUrl }: Payment,
  logFile: string,
): Promise<void> {
  const untilMs = performance.now() + peersPatienceMs;
  while (performance.now() < untilMs) {
    const { status } = (await (await fetch(`${gatewayUrl}/status`)).json()) as { status: string };
    if (status === 'ok') return;
    await pause(askEveryMs);
  }
  say(
    `Warning: clients cannot pay yet. The facilitator ${facilitatorUrl} or the RPC ${rpcUrl} gives no useful answer; ${path.relative('.', logFile)} says more.`,
  );
}

/** The database of `DATABASE_URL`; if that is not set, one in the folder. */
async function openDatabase(dir: string, stops: (() => Promise<unknown>)[]): Promise<string> {
  const env = processEnvironment();
  if (env['DATABASE_URL'] !== undefined) return readDatabaseUrl(env);
  const postgres = await startEmbeddedPostgres({ dir: path.join(dir, 'postgres'), durable: true });
  stops.push(() => postgres.stop());
  return postgres.url('postgres');
}

/** Writes the configuration, and its secrets where there are none yet; returns the file, which `serve` takes as well. */
async function writeConfig(dir: string, { sold, port }: Request, payment: Payment): Promise<string> {
  for (const secretFile of ['receipt.key', 'quote.key']) await keepSecret(dir, secretFile);
  const file = path.join(dir, 'proxy.toml');
  const written = sellerConfig({
    ...payment,
    intro: [
      'Written by `tollbook proxy`, which writes it anew at each start. To change it, copy it: `tollbook serve --config FILE`.',
    ],
    port,
    secret: (name) => secretAt(dir, name.replace('_', '.')),
    sold,
  });
  await writeFile(file, written, { mode: 0o600 });
  await chmod(file, 0o600);
  return file;
}

function ofDevnet(devnet: DevnetFacts | undefined): Payment {
  if (!devnet) throw new Error('there is no devnet');
  const { network, rpcUrl, facilitatorUrl, payTo, token: asset } = devnet;
  const token = { network, asset };
  return { place: 'a chain on this machine', payTo, network, rpcUrl, token, facilitatorUrl };
}

function whatIsSold(
  routesUrl: string,
  gatewayUrl: string,
  { to, routes }: SoldApi,
  { place, payTo }: Payment,
  file: string,
  logFile: string,
): string {
  const sold = routes.map(
    ({ methods, path: pattern, price }) =>
      `  ${price.padEnd(10)} ${methods.join(', ')} ${routesUrl}${pattern}`,
  );
  return `
Sold, and passed on to ${to} once it is paid for:
${sold.join('\n')}
Paid in USDC on ${place}, to ${payTo}.
An unpaid request gets 402 with the offer:
  curl -i ${routesUrl}/
Receipts and counters: ${gatewayUrl}/x402/stats
Configuration: ${path.relative('.', file)}, log: ${path.relative('.', logFile)}
`;
}

/** On a devnet the command is its own first client. */
async function payOnce(routesUrl: string, routes: readonly SoldRoute[], devnet: DevnetFacts): Promise<void> {
  const route = routes.find(({ methods }) => methods.includes('GET'));
  if (!route) return;
  const url = `${routesUrl}${route.path.replace(/\/\*$/, '/')}`;
  say(`Paid self-check: GET ${url}`);
  // the packed package has no client of its own
  const { payForUrl } = await import('../../../devnet/client.ts');
  const { status, payment } = await payForUrl(url, devnet.payerPrivateKey, (step) => say(`  ${step}`));
  say(
    payment === undefined
      ? `  the upstream answered ${status}, which is not charged`
      : `  the upstream answered ${status}, paid in transaction ${payment.transaction}`,
  );
}

function readRequest(args: readonly string[]): Request {
  const { values } = readOptions(appCommands.proxy, args);
  const { to, price, devnet: isDevnet } = values;
  if (to === undefined) throw new ArgumentError('name the API: --to http://localhost:3000');
  if (price === undefined) throw new ArgumentError("say what a request costs: --price '0.01 USD'");
  checkValue('--to', privateBaseUrl, to);
  checkValue('--price', priceUsd, price);
  const routes = [...values.route.map(readRoute), { methods: allMethods, path: '/*', price }];
  const sold = { kind: 'api', to, routes, port: values.port } as const;
  const port = values['gateway-port'];
  readPort('--port', sold.port);
  readPort('--gateway-port', port);
  const network = chooseNetwork(values.network, values.facilitator);
  const payment = isDevnet ? undefined : readPayment(network, values['pay-to']);
  if (isDevnet && (values['pay-to'] !== undefined || values.facilitator !== undefined))
    throw new ArgumentError(
      '--devnet has a payee and a facilitator of its own: leave out --pay-to and --facilitator',
    );
  return { sold, port, dir: values.dir, payment };
}

/** `GET /weather/*=0.02 USD`, or a path for all methods. */
function readRoute(text: string): SoldRoute {
  const [, method, pattern = '', price = ''] = /^(?:([A-Z]+) )?(\/[^=\s]*)=(.+)$/.exec(text) ?? [];
  if (pattern === '')
    throw new ArgumentError(
      `--route is METHOD PATH=PRICE, as 'GET /weather/*=0.02 USD': ${JSON.stringify(text)}`,
    );
  const methods = method === undefined ? allMethods : allMethods.filter((known) => known === method);
  if (methods.length === 0)
    throw new ArgumentError(`--route has a method of ${allMethods.join(', ')}: ${JSON.stringify(text)}`);
  const fault = patternFault(pattern);
  if (fault !== undefined) throw new ArgumentError(`--route: the path ${fault}: ${JSON.stringify(text)}`);
  checkValue('--route', priceUsd, price);
  return { methods, path: pattern, price };
}

function readPayment(
  { name: place, network, token, facilitator }: ChosenNetwork,
  payTo: string | undefined,
): Payment {
  if (payTo === undefined)
    throw new ArgumentError('name your address, which gets the money: --pay-to 0x…, or try it with --devnet');
  checkValue('--pay-to', address, payTo);
  if (facilitator.key !== 'none')
    throw new ArgumentError(
      'this facilitator wants signed requests: `tollbook init` writes a gateway that signs',
    );
  return { place, payTo, network, rpcUrl: 'public', token, facilitatorUrl: facilitator.url };
}
