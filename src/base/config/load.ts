import { jobKey } from '../values/job.ts';
import { readAlerts } from './alerts.ts';
import type { Config } from './config.ts';
import { type ConstantChanges, withChanges } from './constants.ts';
import type { Environment } from './environment.ts';
import { readText, reasonOf } from './files.ts';
import { deepFreeze, frozenMap } from './freeze.ts';
import { readIdentity } from './identity.ts';
import { readJetStream } from './jetstream.ts';
import { ConfigError, formatPath, type Path, createReport, type Findings } from './mistakes.ts';
import { readLog } from './log.ts';
import { readMetrics } from './metrics.ts';
import { readNetworks } from './networks.ts';
import type { ReadFile, Reading } from './reading.ts';
import { readChat } from './chat.ts';
import { gatewayShape, rootShape, type RootTable } from './root.ts';
import { readConsole, readPages } from './pages.ts';
import { readDelivery, readPlain } from './plain-tables.ts';
import { readResultStore } from './result-store.ts';
import { checkRunnerJobs, checkSoldChat, readRoutes } from './routes.ts';
import { readRunners } from './runners.ts';
import { readSpend } from './spend.ts';
import { pick, readTable } from './table.ts';
import { readToml } from './toml-source.ts';
import { readTopUps } from './top-ups.ts';
import { readTraces } from './traces.ts';
import { checkTriggerJobs, readTriggers } from './triggers.ts';
import { isLoopback, urlOfBind } from './hosts.ts';
import { readJobs } from './jobs.ts';

export interface LoadedConfig {
  readonly config: Config;
  /** One line each, with file and line where there is one. */
  readonly warnings: readonly string[];
  /** The keys whose secrets were not read, on request. */
  readonly skippedSecrets: readonly string[];
  /** The files that secrets were read from. */
  readonly secretFiles: readonly string[];
}

export interface LoadOptions {
  /** Reads no secret, so that the rest can be checked if the secrets are not: a gateway cannot be started with the result. */
  readonly withoutSecrets?: boolean;
  /** For development: customers' webhooks may be on this machine, also http. Default: false. */
  readonly loopbackWebhooks?: boolean;
  /** Other values of constants, for a test that would have to wait for hours or to send thousands of requests. */
  readonly constants?: ConstantChanges;
}

/** Reads and checks the operator's file. Throws a ConfigError holding every mistake, an unreadable file included. */
export async function loadConfig(
  file: string,
  env: Environment,
  options: LoadOptions = {},
): Promise<LoadedConfig> {
  let text: string;
  try {
    text = await readText(file);
  } catch (error) {
    throw new ConfigError([{ path: '', file, message: `cannot be read: ${reasonOf(error)}` }]);
  }
  return parseConfig(text, { file, env, readFile: readText, ...options });
}

/** Checks a configuration's text. Reads nothing but what `env` and `readFile` give. Throws a ConfigError. */
export async function parseConfig(
  text: string,
  {
    withoutSecrets,
    constants = {},
    loopbackWebhooks = false,
    ...source
  }: { readonly file: string; readonly env: Environment; readonly readFile: ReadFile } & LoadOptions,
): Promise<LoadedConfig> {
  const toml = readToml(text, source.file);
  const findings: Findings = { mistakes: [], warnings: [] };
  const skipped: Path[] = [];
  const secretFiles = new Set<string>();
  const report = createReport(toml, findings);
  const root = readTable(rootShape, toml.root, [], report);
  const reading: Reading = {
    ...source,
    findings,
    report,
    networks: await readNetworks(root.values.networks, report),
    lineOf: toml.lineOf,
    constants: withChanges(constants),
    loopbackWebhooks,
    skippedSecrets: withoutSecrets ? skipped : undefined,
    secretFiles,
  };
  const config = await readConfig(root, reading);
  if (config === undefined) throw new ConfigError(reading.findings.mistakes);
  return {
    config: deepFreeze(config),
    warnings: Object.freeze(reading.findings.warnings),
    skippedSecrets: skipped.map(formatPath),
    secretFiles: [...secretFiles],
  };
}

async function readConfig(root: RootTable, reading: Reading): Promise<Config | undefined> {
  const { values, whole } = root;
  // if the list of features is wrong, the default applies, so that missing keys of paid jobs are reported in the same run
  const isJobsOn = values.features?.includes('x402') ?? true;
  const isChatOn = values.features?.includes('chat') ?? false;
  const limits = readPlain('limits', values.limits ?? {}, reading);
  const delivery = readDelivery(values.delivery, reading);
  const alerts = await readAlerts(values.alerts, reading, values.ledgerName);
  const discovery = readPlain('discovery', values.discovery, reading);
  const retention = readPlain('retention', values.retention ?? {}, reading);
  const callbacks = readPlain('callbacks', values.callbacks, reading);
  const resultStore = await readResultStore(values.resultStore, reading);
  const metrics = await readMetrics(values.metrics, reading);
  const traces = await readTraces(values.traces, reading, values.ledgerName);
  const log = await readLog(values.log, reading);
  const runners = await readRunners(values.runners, reading);
  const jetstream = await readJetStream(values.jetstream, reading, runners, values.ledgerName);
  const routes = await readRoutes(root, reading);
  const jobs = await readJobs(root, isJobsOn, reading, routes);
  const spend = await readSpend(values.spend, reading);
  const topUps = readTopUps(root, jobs, reading.report);
  const triggers = await readTriggers(values.triggers, isJobsOn, reading);
  checkTriggerJobs(triggers, topUps, runners, reading.report);
  checkRunnerJobs(root, routes, topUps, runners, reading.report);
  const chat = await readChat(root, isChatOn, reading);
  checkSoldChat(root, routes, chat, reading.report);
  const console = readConsole(root, reading);
  const pages = readPages(root, reading);
  const hasPeople = isChatOn || console !== undefined || pages !== undefined;
  const identity = await readIdentity(root, hasPeople, reading);
  if (reading.findings.mistakes.length > 0 || !whole || !limits || !delivery || !alerts || !retention)
    return undefined;
  const config: Config = {
    file: reading.file,
    lineOf: reading.lineOf,
    ...pick(gatewayShape, whole),
    loopbackWebhooks: reading.loopbackWebhooks,
    publicUrl: whole.publicUrl ?? urlOfBind(whole.bindAddress),
    networks: frozenMap(reading.networks),
    jobs: jobs.whole,
    chat,
    spend: isChatOn ? spend : undefined,
    topUps: isJobsOn ? topUps : [],
    identity,
    pages,
    console,
    runners,
    triggers,
    jetstream,
    limits,
    delivery,
    alerts,
    discovery: isJobsOn ? discovery : undefined,
    retention,
    resultStore,
    callbacks: isJobsOn ? callbacks : undefined,
    metrics,
    traces,
    log,
  };
  warnOfPublicUrl(root, config, reading);
  warnOfMissingRunners(config, reading);
  return config;
}

function warnOfPublicUrl(root: RootTable, config: Config, { report }: Reading): void {
  if (root.names('public_url') || isLoopback(config.bindAddress.host)) return;
  report.warning(['public_url'], `is left out, so clients get the address ${config.publicUrl}`);
}

/** A job without a runner is refused before payment. */
function warnOfMissingRunners({ jobs, runners, topUps }: Config, { report }: Reading): void {
  if (jobs === undefined) return;
  const served = new Set(runners.flatMap((runner) => runner.services));
  const topUpJobs = new Set(topUps.map(jobKey));
  const orphans = new Set<number>();
  for (const key of jobs.jobPrices.keys()) {
    const service = Number(key.split('/', 1)[0]);
    const mode = jobs.jobPolicies.get(key)?.invocationMode ?? jobs.defaultInvocationMode;
    if (mode !== 'disabled' && !served.has(service) && !topUpJobs.has(key) && !jobs.routes?.all.has(key))
      orphans.add(service);
  }
  for (const service of orphans) {
    report.warning(
      ['runners'],
      `none serves service ${service}: its jobs are refused with runner_unavailable, before payment`,
    );
  }
}
