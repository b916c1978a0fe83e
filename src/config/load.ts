import { readFile } from 'node:fs/promises';
import { jobKey } from '../domain/payments/job.ts';
import { readAlerts } from './alerts.ts';
import type { Config, JobsConfig } from './config.ts';
import type { Environment } from './environment.ts';
import { reasonOf } from './files.ts';
import { deepFreeze } from './freeze.ts';
import { readIdentity } from './identity.ts';
import { ConfigError } from './mistakes.ts';
import { readLog } from './log.ts';
import type { ReadFile, Reading } from './reading.ts';
import { createReport, type Findings } from './report.ts';
import { readChat } from './chat.ts';
import { rootShape, type RootTable } from './root.ts';
import { readRunners } from './runners.ts';
import { readTable } from './table.ts';
import { readToml } from './toml-source.ts';
import { readDelivery, readLimits } from './tuning.ts';
import { isLoopback, urlOfBind } from './urls.ts';
import { readJobs } from './jobs.ts';

export interface LoadedConfig {
  readonly config: Config;
  /** One line each, with file and line where there is one. */
  readonly warnings: readonly string[];
}

const readText: ReadFile = (path) => readFile(path, 'utf8');

/** Reads and checks the operator's file. Throws a ConfigError holding every mistake, an unreadable file included. */
export async function loadConfig(file: string, env: Environment): Promise<LoadedConfig> {
  let text: string;
  try {
    text = await readText(file);
  } catch (error) {
    throw new ConfigError([{ path: '', file, message: `cannot be read: ${reasonOf(error)}` }]);
  }
  return parseConfig(text, { file, env, readFile: readText });
}

/** Checks a configuration's text. Reads nothing but what `env` and `readFile` give. Throws a ConfigError. */
export async function parseConfig(
  text: string,
  source: { readonly file: string; readonly env: Environment; readonly readFile: ReadFile },
): Promise<LoadedConfig> {
  const toml = readToml(text, source.file);
  const findings: Findings = { mistakes: [], warnings: [] };
  const reading: Reading = { ...source, findings, report: createReport(toml, findings) };
  const root = readTable(rootShape, toml.root, [], reading.report);
  const config = await readConfig(root, reading);
  if (config === undefined) throw new ConfigError(reading.findings.mistakes);
  return { config: deepFreeze(config), warnings: Object.freeze(reading.findings.warnings) };
}

async function readConfig(root: RootTable, reading: Reading): Promise<Config | undefined> {
  // A wrong list of features leaves the default on, so that what x402 misses is told in the same run.
  const isJobsOn = root.values.features?.includes('jobs') ?? true;
  const limits = readLimits(root.values.limits, reading.report);
  const delivery = readDelivery(root.values.delivery, reading.report);
  const alerts = await readAlerts(root.values.alerts, reading);
  const log = await readLog(root.values.log, reading);
  const runners = await readRunners(root.values.runners, reading);
  const offered = await readJobs(root, isJobsOn, reading);
  const chat = await readChat(root, offered, reading);
  const identity = await readIdentity(root, reading);
  const { whole } = root;
  if (reading.findings.mistakes.length > 0 || !whole || !limits || !delivery || !alerts) return undefined;
  const config: Config = {
    file: reading.file,
    bindAddress: whole.bind_address,
    publicUrl: whole.public_url ?? urlOfBind(whole.bind_address),
    features: whole.features,
    jobs: offered.whole,
    chat,
    identity,
    runners,
    limits,
    delivery,
    alerts,
    log,
    trustProxy: whole.trust_proxy,
    logLevel: whole.log_level,
    shutdownGraceMs: whole.shutdown_grace_secs * 1_000,
  };
  warnOfPublicUrl(root, config, reading);
  warnOfMissingRunners(config.jobs, config, reading);
  return config;
}

function warnOfPublicUrl(root: RootTable, config: Config, { report }: Reading): void {
  if (root.names('public_url') || isLoopback(config.bindAddress.host)) return;
  report.warning(['public_url'], `is left out, so clients are told ${config.publicUrl}`);
}

/** A call that nobody fetches is paid for and waits. */
function warnOfMissingRunners(x402: JobsConfig | undefined, config: Config, { report }: Reading): void {
  if (x402 === undefined) return;
  const served = new Set(config.runners.flatMap((runner) => runner.services));
  const topUps = new Set(config.chat?.topUps.map(jobKey));
  const orphans = new Set<number>();
  for (const key of x402.prices.keys()) {
    const service = Number(key.split('/', 1)[0]);
    const mode = x402.policies.get(key)?.invocationMode ?? x402.defaultInvocationMode;
    if (mode !== 'disabled' && !served.has(service) && !topUps.has(key)) orphans.add(service);
  }
  for (const service of orphans) {
    report.warning(['runners'], `none serves service ${service}: its paid calls wait until one does`);
  }
}
