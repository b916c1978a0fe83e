import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { z } from 'zod';
import { readDatabaseUrl } from '../../../base/config/database-url.ts';
import { processEnvironment } from '../../../base/config/environment.ts';
import { loadConfig } from '../../../base/config/load.ts';
import { privateBaseUrl, secureBaseUrl } from '../../../base/config/urls.ts';
import { priceUsd } from '../../../base/config/values.ts';
import { patternFault } from '../../../base/values/route-pattern.ts';
import { ArgumentError, readAddress, readOptions, readPort } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { notDone, say, untilSignal } from '../../../base/terminal/terminal.ts';
import { payForUrl } from '../../../devnet/client.ts';
import { lockFolder } from '../../../devnet/folder-lock.ts';
import { requireFreePorts } from '../../../devnet/ports.ts';
import { startEmbeddedPostgres } from '../../../devnet/postgres.ts';
import { migrate } from '../../../ledger/store/migrations.ts';
import { createLogger } from '../../logger.ts';
import { startGateway } from '../../start.ts';
import { appCommands } from '../descriptions.ts';
import { startDevnetProcess, type DevnetFacts } from '../start/devnet-process.ts';
import {
  type ProxyNetwork,
  proxyNetworks,
  type ProxyRoute,
  type ProxyWishes,
  writeProxyConfig,
} from '../start/proxy-config.ts';

const allMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

interface Request extends Pick<ProxyWishes, 'to' | 'routes' | 'port' | 'gatewayPort'> {
  readonly dir: string;
  /** Undefined with a devnet, which has its own. */
  readonly payment: Pick<ProxyWishes, 'payTo' | 'network' | 'facilitatorUrl'> | undefined;
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
      { part: 'routes', port: Number(request.port), option: '--port' },
      { part: 'gateway', port: Number(request.gatewayPort), option: '--gateway-port' },
    ]);
    await startProxy(dir, request, stops);
    say(`${await signal}: stopping`);
    return exitCodes.done;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

async function startProxy(
  dir: string,
  { payment, ...wanted }: Request,
  stops: (() => Promise<unknown>)[],
): Promise<void> {
  const databaseUrl = await openDatabase(dir, stops);
  await migrate(databaseUrl);
  const devnet = payment ? undefined : await startDevnetProcess(dir, stops, undefined);
  const wishes = { ...wanted, ...(payment ?? ofDevnet(devnet)) };
  const file = await writeProxyConfig(dir, wishes);
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
  say(whatIsSold(routesUrl, gateway.url, wishes, file, logFile));
  if (devnet) await payOnce(routesUrl, wishes.routes, devnet);
}

/** The database of `DATABASE_URL`; if that is not set, one in the folder. */
async function openDatabase(dir: string, stops: (() => Promise<unknown>)[]): Promise<string> {
  const env = processEnvironment();
  if (env['DATABASE_URL'] !== undefined) return readDatabaseUrl(env);
  const postgres = await startEmbeddedPostgres({ dir: path.join(dir, 'postgres'), durable: true });
  stops.push(() => postgres.stop());
  return postgres.url('postgres');
}

function ofDevnet(devnet: DevnetFacts | undefined): NonNullable<Request['payment']> {
  if (!devnet) throw new Error('there is no devnet');
  const { network: id, rpcUrl, facilitatorUrl, payTo, token: asset } = devnet;
  const token = { asset, symbol: 'USDC', eip712Name: 'USD Coin' };
  const network: ProxyNetwork = { name: 'a chain on this machine', id, rpcUrl, token, facilitatorUrl };
  checkValue('--facilitator', secureBaseUrl, facilitatorUrl);
  return { payTo, network, facilitatorUrl };
}

/** As the configuration would refuse it, before anything is started. */
function checkValue(option: string, schema: z.ZodType, given: string): void {
  const read = schema.safeParse(given);
  if (!read.success) throw new ArgumentError(`${option} ${read.error.issues[0]?.message ?? 'is wrong'}`);
}

function whatIsSold(
  routesUrl: string,
  gatewayUrl: string,
  { to, routes, payTo, network }: ProxyWishes,
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
Paid in ${network.token.symbol} on ${network.name}, to ${payTo}.
An unpaid request gets 402 with the offer:
  curl -i ${routesUrl}/
Receipts and counters: ${gatewayUrl}/x402/stats
Configuration: ${path.relative('.', file)}, log: ${path.relative('.', logFile)}
`;
}

/** On a devnet the command is its own first client. */
async function payOnce(routesUrl: string, routes: readonly ProxyRoute[], devnet: DevnetFacts): Promise<void> {
  const route = routes.find(({ methods }) => methods.includes('GET'));
  if (!route) return;
  const url = `${routesUrl}${route.path.replace(/\/\*$/, '/')}`;
  say(`Paid self-check: GET ${url}`);
  const { status, transaction } = await payForUrl(url, devnet.payerPrivateKey, (step) => say(`  ${step}`));
  say(
    transaction === undefined
      ? `  the upstream answered ${status}, which is not charged`
      : `  the upstream answered ${status}, paid in transaction ${transaction}`,
  );
}

function readRequest(args: readonly string[]): Request {
  const { values } = readOptions(appCommands.proxy, args);
  const { to, price, devnet: isDevnet } = values;
  if (to === undefined) throw new ArgumentError('name the API: --to http://localhost:3000');
  if (price === undefined) throw new ArgumentError("say what a request costs: --price '0.01 USD'");
  checkValue('--to', privateBaseUrl, to);
  checkValue('--price', priceUsd, price);
  if (!Object.hasOwn(proxyNetworks, values.network))
    throw new ArgumentError(`--network is one of ${Object.keys(proxyNetworks).join(', ')}`);
  const routes = [...values.route.map(readRoute), { methods: allMethods, path: '/*', price }];
  const [port, gatewayPort] = [values.port, values['gateway-port']];
  readPort('--port', port);
  readPort('--gateway-port', gatewayPort);
  const payment = isDevnet ? undefined : readPayment(values);
  if (isDevnet && (values['pay-to'] !== undefined || values.facilitator !== undefined))
    throw new ArgumentError(
      '--devnet has a payee and a facilitator of its own: leave out --pay-to and --facilitator',
    );
  return { to, routes, port, gatewayPort, dir: values.dir, payment };
}

/** `GET /weather/*=0.02 USD`, or a path for all methods. */
function readRoute(text: string): ProxyRoute {
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

function readPayment(values: {
  readonly network: string;
  readonly 'pay-to'?: string | undefined;
  readonly facilitator?: string | undefined;
}): NonNullable<Request['payment']> {
  const network = proxyNetworks[values.network];
  if (!network) throw new ArgumentError(`--network ${values.network} is not known`);
  if (values['pay-to'] === undefined)
    throw new ArgumentError('name your address, which gets the money: --pay-to 0x…, or try it with --devnet');
  const payTo = readAddress(values['pay-to'], '--pay-to is your address');
  const facilitatorUrl = values.facilitator ?? network.facilitatorUrl;
  if (facilitatorUrl === undefined)
    throw new ArgumentError(
      `${network.name}: real money moves there. Name the facilitator that settles for you: --facilitator URL`,
    );
  return { payTo, network, facilitatorUrl };
}
