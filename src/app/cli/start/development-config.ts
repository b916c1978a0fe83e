import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../../base/config/config.ts';
import { processEnvironment } from '../../../base/config/environment.ts';
import { loadConfig } from '../../../base/config/load.ts';
import { errorCode } from '../../../devnet/error-code.ts';
import { spendTable } from '../../../devnet/prepaid-contract.ts';
import { topUpTables } from '../../../devnet/top-up.ts';
import type { DevnetFacts } from './devnet-process.ts';

/** The ports in the development configuration. */
const defaultPort = 8402;
const defaultRoutesPort = 8405;
const developmentConfig = new URL('../../../../config/dev.toml', import.meta.url);
const identitySecretFile = 'identity.secret';
const operatorKeyFile = 'operator.key';
const logKeyFile = 'log.key';
const receiptKeyFile = 'receipt.key';
const quoteKeyFile = 'quote.key';

/** Where a gateway on this port serves its paid routes; any free port if the gateway takes any. */
export function routesPort(port: number): number {
  return port === 0 ? 0 : port + defaultRoutesPort - defaultPort;
}

/** Writes the development configuration with this devnet's addresses to a file, which a second gateway can use too. */
export async function developmentGateway(dir: string, port: string, devnet: DevnetFacts): Promise<Config> {
  const template = await readFile(developmentConfig, 'utf8');
  // absolute paths, since the configuration may be copied to another folder
  const text = template
    .replace(
      /^(?=rate_per)/m,
      `receipt_key = ${secretAt(dir, receiptKeyFile)}
quote_key = ${secretAt(dir, quoteKeyFile)}
`,
    )
    .replaceAll(`127.0.0.1:${defaultPort}`, `127.0.0.1:${port}`)
    .replaceAll(`127.0.0.1:${defaultRoutesPort}`, `127.0.0.1:${routesPort(Number(port))}`)
    .replaceAll('http://127.0.0.1:8412', devnet.rpcUrl)
    .replaceAll('http://127.0.0.1:8413', devnet.facilitatorUrl)
    .replaceAll('http://127.0.0.1:8414/calls', devnet.runnerUrl)
    .replaceAll('http://127.0.0.1:8415/v1', devnet.modelUpstreamUrl)
    .replaceAll('http://127.0.0.1:8416', devnet.apiUrl);
  const file = path.join(dir, 'gateway.toml');
  await keepSecret(dir, identitySecretFile);
  await keepSecret(dir, logKeyFile);
  await keepSecret(dir, receiptKeyFile);
  await keepSecret(dir, quoteKeyFile);
  const keyFile = path.resolve(dir, operatorKeyFile);
  await writeFile(keyFile, devnet.prepaid.operatorPrivateKey, { mode: 0o600 });
  const spend = spendTable(devnet, devnet.prepaid, keyFile);
  const tables = [identityTable(dir, devnet), spend, topUpTables, logTable(dir), '\n[pages]\n\n[console]\n'];
  await writeFile(file, [text, ...tables].join(''), { mode: 0o600 });
  await chmod(file, 0o600);
  const env = { ...processEnvironment(), TOLLBOOK_RUNNER_TOKEN: devnet.runnerToken };
  // clients and their receivers are on this machine
  const { config } = await loadConfig(file, env, { loopbackWebhooks: true });
  return config;
}

/** User accounts, with the secret and the mails in the folder of the devnet. */
function identityTable(dir: string, { chainId }: DevnetFacts): string {
  return `
[identity]
secret = ${secretAt(dir, identitySecretFile)}
siwe_chain_id = ${chainId}
mail_dir = ${JSON.stringify(path.join(dir, 'mail'))}
`;
}

/** The sealed log. */
function logTable(dir: string): string {
  return `
[log]
origin = "tollbook.devnet/log"
key = ${secretAt(dir, logKeyFile)}
`;
}

/** The value of a key whose secret is in a file of the folder. */
export function secretAt(dir: string, file: string): string {
  return JSON.stringify(`file:${path.resolve(dir, file)}`);
}

/** Writes 32 random bytes at the first start in this folder. */
export async function keepSecret(dir: string, file: string): Promise<void> {
  const secret = randomBytes(32).toString('base64');
  try {
    await writeFile(path.join(dir, file), `${secret}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

/** A file that is there while demo data is made. */
export const unfinishedMark = 'demo-data.unfinished';

const stateFiles = [
  unfinishedMark,
  'postgres',
  'chain.json',
  'devnet.json',
  'gateway.toml',
  'gateway.log',
  identitySecretFile,
  operatorKeyFile,
  logKeyFile,
  receiptKeyFile,
  quoteKeyFile,
  'mail',
];

/** Deletes the state of earlier starts in this folder. */
export function removeState(dir: string): void {
  for (const name of stateFiles) rmSync(path.join(dir, name), { recursive: true, force: true });
}
