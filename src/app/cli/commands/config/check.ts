import { countOf } from '../../../../base/values/count-text.ts';
import { askChains } from '../../../chain-facts.ts';
import { located } from '../../../chain-findings.ts';
import { askRates } from '../../../rate-findings.ts';
import type { Config } from '../../../../base/config/config.ts';
import { databaseWarning, namesDatabase, readDatabaseUrl } from '../../../../base/config/database-url.ts';
import { processEnvironment } from '../../../../base/config/environment.ts';
import { loadConfig } from '../../../../base/config/load.ts';
import { ConfigError, formatMistake } from '../../../../base/config/mistakes.ts';
import { ArgumentError, readOptions } from '../../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../../base/terminal/exit-codes.ts';
import { fail, say } from '../../../../base/terminal/terminal.ts';
import { appCommands } from '../../descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(appCommands['config check'], args);
  const [file] = positionals;
  if (file === undefined || positionals.length > 1)
    throw new ArgumentError('name the file: tollbook config check FILE');
  const env = processEnvironment();
  const options = { withoutSecrets: values['no-secrets'] };
  const { config, warnings, skippedSecrets } = await loadConfig(file, env, options);
  for (const warning of warnings) fail(`warning: ${warning}`);
  if (skippedSecrets.length > 0) fail(`not checked: ${skippedSecrets.join(', ')}`);
  if (!options.withoutSecrets && namesDatabase(env)) {
    const warning = databaseWarning(await readDatabaseUrl(env), env);
    if (warning !== undefined) fail(`warning: ${warning}`);
  }
  if (values.online) await checkOnline(config);
  const jobs = config.jobs?.jobPrices.size ?? 0;
  say(
    `${file} is valid: ${countOf(jobs, 'priced job')}, ${config.jobs?.acceptedTokens.length ?? 0} accepted tokens.`,
  );
  return exitCodes.done;
}

/** @throws ConfigError with every mistake that a chain shows */
async function checkOnline(config: Config): Promise<void> {
  const [{ mistakes, unanswered, unchecked }, rates] = await Promise.all([
    askChains(config),
    askRates(config),
  ]);
  if (mistakes.length === 0) for (const line of rates.lines) say(line);
  for (const finding of [...unchecked, ...unanswered, ...rates.warnings])
    fail(`warning: ${formatMistake(located(config, finding))}`);
  if (mistakes.length > 0) throw new ConfigError(mistakes.map((finding) => located(config, finding)));
}
