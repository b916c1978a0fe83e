import { z } from 'zod';
import { type IdentityConfig, type ProviderConfig, providerPresets } from './config.ts';
import { besideConfig } from './files.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { readSecret } from './secrets.ts';
import { readTable, readTables, type Table } from './table.ts';
import { isLoopback, rpcUrl, secureBaseUrl, urlOfBind } from './urls.ts';
import { filePath, matching, oneOf, plainName, variableName, wholeNumber } from './values.ts';

const minSecretChars = 32;
const maxChainId = Number.MAX_SAFE_INTEGER;

const identityShape = {
  secret_env: variableName.optional(),
  secret_file: filePath.optional(),
  session_days: wholeNumber(1, 365).default(7),
  siwe_domain: matching(
    /^[A-Za-z0-9.-]{1,253}(?::\d{1,5})?$/,
    'must be a host, with its port where it is not the usual one',
  ).optional(),
  siwe_uri: secureBaseUrl.optional(),
  siwe_chain_id: wholeNumber(1, maxChainId).default(1),
  siwe_rpc_url: rpcUrl.optional(),
  mailer: oneOf(['folder']).optional(),
  mail_dir: filePath.default('mail'),
  providers: z.unknown(),
} as const;

const providerShape = {
  name: plainName,
  preset: oneOf(providerPresets).optional(),
  issuer: secureBaseUrl.optional(),
  client_id: matching(/^[\x21-\x7e]{1,512}$/, 'must be 1 to 512 visible ASCII characters'),
  client_secret_env: variableName.optional(),
  client_secret_file: filePath.optional(),
} as const;

/** What the presets that speak OpenID Connect are known by. */
const presetIssuers: Readonly<Record<string, string>> = {
  google: 'https://accounts.google.com',
  gitlab: 'https://gitlab.com',
};

/**
 * Reads `[identity]`: people's accounts, which belong to the routing feature. Undefined where the table is not there, that
 * feature is off, or after a report.
 */
export async function readIdentity(root: RootTable, reading: Reading): Promise<IdentityConfig | undefined> {
  if (!root.names('identity')) return undefined;
  const { report } = reading;
  const table = readTable(identityShape, root.values.identity, ['identity'], report);
  const secret = await readIdentitySecret(table, reading);
  const providers = await readProviders(table.values.providers, reading);
  const isOn = root.values.features?.includes('chat') ?? false;
  checkPublicUrl(root, isOn, reading);
  const { whole } = table;
  if (!isOn || whole === undefined || secret === undefined) return undefined;
  return {
    secret,
    sessionDays: whole.session_days,
    siweDomain: whole.siwe_domain,
    siweUri: whole.siwe_uri,
    siweChainId: whole.siwe_chain_id,
    siweRpcUrl: whole.siwe_rpc_url,
    mailDir: whole.mailer === undefined ? undefined : besideConfig(reading.file, whole.mail_dir),
    providers,
  };
}

async function readIdentitySecret(
  { at, values, names }: Table<typeof identityShape>,
  reading: Reading,
): Promise<string | undefined> {
  if (!names('secret_env') && !names('secret_file'))
    reading.report.mistake([...at, 'secret_env'], 'is missing: sessions are signed with a secret');
  return readSecret(
    {
      at,
      envKey: 'secret_env',
      envName: values.secret_env,
      fileKey: 'secret_file',
      filePath: values.secret_file,
      minChars: minSecretChars,
    },
    reading,
  );
}

/** A session's cookie never crosses a network unencrypted. */
function checkPublicUrl(root: RootTable, isOn: boolean, { report }: Reading): void {
  const { public_url: named, bind_address: bind } = root.values;
  const publicUrl = named ?? (bind && urlOfBind(bind));
  if (!isOn || publicUrl === undefined) return;
  const { protocol, hostname, pathname } = new URL(publicUrl);
  if (protocol !== 'https:' && !isLoopback(hostname.replace(/^\[(.*)\]$/, '$1')))
    report.mistake(['public_url'], 'must be https: sessions have cookies (http only on loopback)');
  else if (pathname !== '/') report.mistake(['public_url'], 'must have no path: a cookie is of a whole host');
}

async function readProviders(raw: unknown, reading: Reading): Promise<ProviderConfig[]> {
  const providers: ProviderConfig[] = [];
  const names = new Set<string>();
  const tables = readTables(providerShape, raw, ['identity', 'providers'], reading.report);
  for (const { at, values, whole, names: hasNamed } of tables) {
    const { name, preset } = values;
    if (name !== undefined && names.has(name)) reading.report.mistake([...at, 'name'], 'is taken by another');
    if (name !== undefined) names.add(name);
    if (hasNamed('preset') === hasNamed('issuer'))
      reading.report.mistake([...at, 'issuer'], 'either this or a preset must be named');
    if (preset === 'github' && name !== undefined && name !== preset)
      reading.report.mistake([...at, 'name'], 'must be "github" with that preset');
    const clientSecret = await readClientSecret(at, values, reading);
    if (whole === undefined || clientSecret === undefined) continue;
    providers.push({
      name: whole.name,
      clientId: whole.client_id,
      clientSecret,
      issuer: whole.issuer ?? presetIssuers[preset ?? ''],
    });
  }
  return providers;
}

async function readClientSecret(
  at: Path,
  values: Table<typeof providerShape>['values'],
  reading: Reading,
): Promise<string | undefined> {
  const { client_secret_env: envName, client_secret_file: path } = values;
  if (envName === undefined && path === undefined)
    reading.report.mistake([...at, 'client_secret_env'], 'is missing');
  return readSecret(
    {
      at,
      envKey: 'client_secret_env',
      envName,
      fileKey: 'client_secret_file',
      filePath: path,
      minChars: 1,
    },
    reading,
  );
}
