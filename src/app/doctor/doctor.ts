import type { Config } from '../../base/config/config.ts';
import type { Environment } from '../../base/config/environment.ts';
import { type Check, type CheckResult, limited } from './check-result.ts';
import { checkSecretFiles, readConfiguration } from './configuration.ts';
import { checkDatabase } from './database.ts';
import { checkFacilitators } from './facilitator.ts';
import { checkNetworks, checkRates, checkTokens } from './networks.ts';
import { checkPeers, checkReports } from './peers.ts';
import { checkPublicAddresses } from './public-address.ts';

/** Longer than what each check allows its own requests. */
const limitMs = 10_000;

/**
 * Checks all that a gateway of this configuration and environment needs, all at once. Changes nothing and pays nothing. If the
 * configuration has mistakes, only what does not depend on it is checked.
 */
export async function diagnose(file: string, env: Environment): Promise<readonly CheckResult[]> {
  const { loaded, results } = await readConfiguration(file, env);
  const checks: readonly (readonly [string, Check])[] = [
    ['secret files', () => checkSecretFiles(filesOf(loaded?.secretFiles ?? [], env))],
    ['database', () => checkDatabase(env)],
    ...(loaded ? ofConfiguration(loaded.config) : []),
  ];
  const found = await Promise.all(checks.map(([what, check]) => limited(what, limitMs, check)));
  return [...results, ...found.flat()];
}

function ofConfiguration(config: Config): (readonly [string, Check])[] {
  const { jobs } = config;
  return [
    ['facilitator', async () => (jobs ? checkFacilitators(jobs) : [])],
    ['networks', () => checkNetworks(config)],
    ['tokens and contracts', () => checkTokens(config)],
    ['rates', () => checkRates(config)],
    ['peers', () => checkPeers(config)],
    ['public_url', () => checkPublicAddresses(config)],
    ['alerts', async () => checkReports(config)],
  ];
}

/** Those of the configuration, and those of the database's address and password. */
function filesOf(secretFiles: readonly string[], env: Environment): readonly string[] {
  const ofDatabase = ['DATABASE_URL_FILE', 'PGPASSWORD_FILE'].flatMap((name) => env[name] || []);
  return [...new Set([...secretFiles, ...ofDatabase])];
}
