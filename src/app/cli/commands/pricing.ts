import type { Logger } from 'pino';
import { createLogger } from '../../logger.ts';
import { processEnvironment } from '../../../base/config/environment.ts';
import { ConfigError } from '../../../base/config/mistakes.ts';
import { loadPricing, type PricingConfig } from '../../../base/config/pricing.ts';
import { bindAddress } from '../../../base/config/urls.ts';
import { createPricingEngine } from '../../pricing/pricing-engine.ts';
import { type PricingServer, servePricing } from '../../pricing/pricing-server.ts';
import { proxyList } from '../../pricing/proxies.ts';
import { keySigner } from '../../pricing/signer.ts';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { twoSignals } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';

/** Answers prices with the operator's signature. Needs no ledger, and does not sell by x402. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const request = readRequest(args);
  const signals = twoSignals();
  // a SIGHUP during the start must not end the process; the configuration was read just now
  process.on('SIGHUP', () => {});
  const load = () => loadPricing(request.file, processEnvironment(), request.keyFile);
  const { logLevel, operatorKey, warnings, ...config } = await load();
  let { prices } = config;
  const logger = createLogger(logLevel);
  for (const warning of warnings) logger.warn({ warning }, 'the configuration has a warning');
  const engine = createPricingEngine({
    prices: () => prices,
    signer: keySigner(operatorKey),
    quoteTtlSecs: request.quoteTtlSecs,
    log: logger,
  });
  const server = await servePricing({
    engine,
    bind: request.bind,
    trustProxy: request.trustProxy,
    log: logger,
  });
  // reloads run one after the other, so that the newest file wins
  const renew = async (): Promise<void> => {
    prices = (await reload(load, operatorKey, logger)) ?? prices;
  };
  let last = Promise.resolve();
  process.on('SIGHUP', () => {
    last = last.then(renew);
  });
  logger.info({ url: server.url, operator: engine.operator, prices: prices.size }, 'listening');
  logger.info({ signal: await signals.first }, 'stopping');
  return stop(server, signals.second, logger);
}

interface Request {
  readonly file: string;
  readonly keyFile: string | undefined;
  readonly bind: { readonly host: string; readonly port: number };
  readonly quoteTtlSecs: number;
  readonly trustProxy: readonly string[];
}

function readRequest(args: readonly string[]): Request {
  const { values } = readOptions(appCommands.pricing, args);
  const { config: file } = values;
  if (file === undefined) throw new ArgumentError('name the configuration: tollbook pricing --config FILE');
  const bind = bindAddress.safeParse(values.bind);
  if (!bind.success)
    throw new ArgumentError(`--bind ${bind.error.issues.map(({ message }) => message).join(', ')}`);
  return {
    file,
    keyFile: values['key-file'],
    bind: bind.data,
    quoteTtlSecs: readWhole('--quote-ttl-secs', values['quote-ttl-secs'], 1, 86_400),
    trustProxy: readProxies(values['trust-proxy']),
  };
}

function readProxies(text: string): readonly string[] {
  const ranges = text.split(',').filter((range) => range !== '');
  try {
    proxyList(ranges);
  } catch {
    throw new ArgumentError('--trust-proxy has addresses or CIDR ranges, with commas between them');
  }
  return ranges;
}

function readWhole(option: string, text: string, min: number, max: number): number {
  const number = Number(text);
  if (/^\d{1,6}$/.test(text) && number >= min && number <= max) return number;
  throw new ArgumentError(`${option} is a whole number from ${min} to ${max}`);
}

/** The new prices; undefined if the configuration has mistakes, or is of another operator. */
async function reload(
  load: () => Promise<PricingConfig>,
  operatorKey: string,
  logger: Logger,
): Promise<PricingConfig['prices'] | undefined> {
  try {
    const config = await load();
    if (config.operatorKey === operatorKey)
      logger.info({ prices: config.prices.size }, 'configuration loaded');
    else
      logger.warn(
        { require_restart: ['operator_key'] },
        'configuration loaded, but changes of these keys require a restart',
      );
    return config.prices;
  } catch (error) {
    if (error instanceof ConfigError)
      logger.error({ mistakes: error.mistakes }, 'the configuration has mistakes; nothing was changed');
    else logger.error({ err: error }, 'the configuration could not be loaded');
    return undefined;
  }
}

async function stop(
  server: PricingServer,
  second: Promise<NodeJS.Signals>,
  logger: Logger,
): Promise<ExitCode> {
  const ending = await Promise.race([server.stop(), second]);
  if (typeof ending === 'string') process.exit(exitCodes.notDone);
  const facts = { requests_cut: ending.requestsCut };
  if (ending.requestsCut === 0) logger.info(facts, 'stopped: every request has its answer');
  else logger.warn(facts, 'stopped: requests for a price were cut after 10 s');
  return exitCodes.done;
}
