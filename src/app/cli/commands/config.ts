import { countOf } from '../../../base/values/count-text.ts';
import { askChains } from '../../chain-facts.ts';
import { located } from '../../chain-findings.ts';
import { askRates } from '../../rate-findings.ts';
import type { Config } from '../../../base/config/config.ts';
import { databaseWarning, namesDatabase, readDatabaseUrl } from '../../../base/config/database-url.ts';
import { processEnvironment } from '../../../base/config/environment.ts';
import { loadConfig } from '../../../base/config/load.ts';
import { ConfigError, formatMistake } from '../../../base/config/mistakes.ts';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';
import { configReference, type KeyReference, type TableReference } from '../../../base/config/reference.ts';

export async function check(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(appCommands['config check'], args);
  const [file] = positionals;
  if (file === undefined) throw new ArgumentError('name the file: tollbook config check FILE');
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

/** Prints every key of the operator's file, as docs/configuration-reference.md has them. */
export async function reference(args: readonly string[]): Promise<ExitCode> {
  readOptions(appCommands['config reference'], args);
  say(referencePage(configReference()));
  return exitCodes.done;
}

/** The whole page, in Markdown, without the end of its last line. */
export function referencePage(tables: readonly TableReference[]): string {
  const count = tables.reduce((sum, { keys }) => sum + keys.length, 0);
  const intro = `# Every key of the configuration
\`tollbook config reference\` prints this page from the schema: ${count} keys, [grouped](configuration.md). Each has its default and its type in brackets. A key with
\`*\` changes with a reload; one with neither "required" nor a default may be left out. "10 to 20" is a whole number, in the unit that ends the key's name: \`bps\` are
hundredths of a per cent. A secret is \`"env:NAME"\` or \`"file:/path"\`; those that you choose have at least 32 characters. A *name* is 1 to 64 of A-Z, a-z, 0-9,
".", "_" and "-".`;
  return [intro, ...tables.map(tableText)].join('\n\n');
}

function tableText({ header, keys }: TableReference): string {
  const title = header === '' ? '## The top of the file' : `## \`${header}\``;
  if (keys.length === 0) return `${title}\nIt has no keys: the table alone switches it on.`;
  return [title, ...keys.map(itemOf)].join('\n');
}

/** The type of `plainName`, which the page explains once. */
const plainNameType = '1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"';

function itemOf({ name, type, byDefault, isRequired, isReloadable, meaning }: KeyReference): string {
  const given = byDefault === undefined ? (isRequired ? 'required' : '') : `\`${byDefault}\``;
  const shown = type === plainNameType ? 'name' : type.replaceAll('" or "', '", "');
  // the default of a flag shows its type
  const value =
    given === '' ? shown : given === '`true`' || given === '`false`' ? given : `${given}; ${shown}`;
  return `- \`${name}\`${isReloadable ? ' *' : ''} (${value}): ${meaning}`;
}
