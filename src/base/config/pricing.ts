import type { Hex } from '../values/primitives.ts';
import type { Environment } from './environment.ts';
import { readEnvironmentSecret } from './environment-secret.ts';
import { isReadableByAll, readText, reasonOf } from './files.ts';
import { ConfigError, type Mistake, createReport, type Findings } from './mistakes.ts';
import { readPrices } from './prices.ts';
import { isPrivateKey } from './private-key.ts';
import type { Reading } from './reading.ts';
import { gatewayShape, jobsShape, jobsTables } from './root.ts';
import { type ConfigOf, isTable, readTable } from './table.ts';
import { readToml } from './toml-source.ts';

/** All that a pricing service reads of a gateway's file: it must not matter to it how the gateway is paid. */
const pricingShape = {
  log_level: gatewayShape.log_level,
  job_prices: jobsTables.job_prices,
  job_prices_file: jobsShape.job_prices_file,
} as const;

export interface PricingConfig extends Pick<ConfigOf<typeof pricingShape>, 'logLevel'> {
  /** Wei above zero, by `jobKey()`. At least one. */
  readonly prices: ReadonlyMap<string, bigint>;
  readonly operatorKey: Hex;
  /** One line each. */
  readonly warnings: readonly string[];
}

/** The variable that has the operator's private key, or with the suffix `_FILE` the file that has. */
const operatorKeyVariable = 'TOLLBOOK_OPERATOR_KEY';

/**
 * Reads the price map of a gateway's file and the operator's key. Throws a ConfigError holding every mistake.
 * @param keyFile the file that has the key, instead of the environment
 */
export async function loadPricing(
  file: string,
  env: Environment,
  keyFile: string | undefined,
): Promise<PricingConfig> {
  const findings: Findings = { mistakes: [], warnings: [] };
  const read = await readFile({ file, env, readFile: readText, findings });
  const operatorKey = await readOperatorKey(env, keyFile, findings);
  if (!read || operatorKey === undefined || findings.mistakes.length > 0)
    throw new ConfigError(findings.mistakes);
  const secretFile = keyFile ?? env[`${operatorKeyVariable}_FILE`];
  if (secretFile && (await isReadableByAll(secretFile)))
    findings.warnings.push(`${secretFile}  can be read by every user of this machine: run chmod 600 on it`);
  return { ...read, operatorKey, warnings: findings.warnings };
}

async function readFile(
  source: Pick<Reading, 'file' | 'env' | 'readFile' | 'findings'>,
): Promise<Pick<PricingConfig, 'logLevel' | 'prices'> | undefined> {
  const { file, findings } = source;
  let text: string;
  try {
    text = await source.readFile(file);
  } catch (error) {
    findings.mistakes.push({ path: '', file, message: `cannot be read: ${reasonOf(error)}` });
    return undefined;
  }
  let toml;
  try {
    toml = readToml(text, file);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    findings.mistakes.push(...error.mistakes);
    return undefined;
  }
  const report = createReport(toml, findings);
  const root = readTable(pricingShape, onlyKeysOf(pricingShape, toml.root), [], report);
  const prices = await readPrices(root, { ...source, report });
  if (prices.size === 0 && findings.mistakes.length === 0)
    report.mistake([], 'no job has a price: name them in job_prices or in job_prices_file');
  for (const [key, { inUsd }] of prices)
    if (inUsd) report.mistake([], `job ${key} is priced in dollars: the pricing service answers in wei`);
  const inWei = new Map([...prices].map(([key, { wei }]) => [key, wei]));
  return root.whole && { logLevel: root.whole.logLevel, prices: inWei };
}

function onlyKeysOf(shape: object, table: unknown): object {
  if (!isTable(table)) return {};
  return Object.fromEntries(Object.entries(table).filter(([key]) => Object.hasOwn(shape, key)));
}

/** No message ever contains the key. */
async function readOperatorKey(
  env: Environment,
  keyFile: string | undefined,
  { mistakes }: Findings,
): Promise<Hex | undefined> {
  const wrong = (file: string, message: string): undefined => void mistakes.push({ path: '', file, message });
  const secret = keyFile === undefined ? await fromEnvironment(env, wrong) : await fromFile(keyFile, wrong);
  if (!secret) return undefined;
  const key = secret.value.trim().toLowerCase();
  return isPrivateKey(key) ? key : wrong(secret.source, 'has no private key (0x and 64 hex digits)');
}

type Report = (file: string, message: Mistake['message']) => undefined;
type Secret = { readonly value: string; readonly source: string } | undefined;

async function fromEnvironment(env: Environment, wrong: Report): Promise<Secret> {
  const secret = await readEnvironmentSecret(operatorKeyVariable, env, readText);
  if (secret.kind === 'found') return secret;
  return secret.kind === 'wrong'
    ? wrong(secret.variable, secret.message)
    : wrong(
        operatorKeyVariable,
        "is not set: it has the operator's private key, or name a file with --key-file",
      );
}

async function fromFile(file: string, wrong: Report): Promise<Secret> {
  try {
    return { value: await readText(file), source: file };
  } catch (error) {
    return wrong(file, `cannot be read: ${reasonOf(error)}`);
  }
}
