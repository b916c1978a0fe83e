import type { RotatingSecret } from '../values/rotating-secret.ts';
import { z } from 'zod';
import { besideConfig } from './files.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { rotatingSecret, secret } from './secret-source.ts';
import { ownSecretChars, readRotatingSecret, readSecret } from './secrets.ts';
import { readSmtp, type SmtpConfig } from './smtp.ts';
import { type ConfigOf, readTable, readTables, type Table } from './table.ts';
import { isLoopback, urlOfBind } from './hosts.ts';
import { origin, rpcUrl, secureBaseUrl } from './urls.ts';
import { filePath, matching, oneOf, plainName, wholeNumber } from './values.ts';

const maxChainId = Number.MAX_SAFE_INTEGER;

export const identityShape = {
  secret: rotatingSecret.describe('Signs sessions and links: 32 characters or more'),
  session_days: wholeNumber(1, 365).default(7).describe('How long a session is valid'),
  trusted_origins: z
    .array(origin, 'must be an array of origins')
    .default([])
    .describe('Origins of other pages that may act by the cookie of their visitor, below `/api` and `/v1`'),
  siwe_domain: matching(
    /^[A-Za-z0-9.-]{1,253}(?::\d{1,5})?$/,
    'must be a host, with its port unless it is the default one',
  )
    .optional()
    .describe(
      "The domain and URI of the messages that wallets sign; by default the public URL's host, and the public URL",
    ),
  siwe_uri: secureBaseUrl.optional().describe('The URI of those messages'),
  siwe_chain_id: wholeNumber(1, maxChainId).default(1).describe('The chain that wallets sign for'),
  siwe_rpc_url: rpcUrl
    .optional()
    .describe("Where contract wallets' signatures are checked; without it they cannot sign in"),
  mailer: oneOf(['folder', 'smtp'])
    .optional()
    .describe(
      'How mails are sent: as files for another program, or to the server of [identity.smtp]; left out, no user has a password',
    ),
  mail_dir: filePath.default('mail').describe('The folder of the mails with mailer = "folder"'),
  smtp: z.unknown(),
  providers: z.unknown(),
} as const;

export const providerShape = {
  name: plainName.describe('The end of the redirect URI, unique among providers'),
  preset: oneOf(['google', 'gitlab', 'github'])
    .optional()
    .describe('A provider whose addresses are known; else issuer'),
  issuer: secureBaseUrl.optional().describe('The issuer of a provider that speaks OpenID Connect'),
  client_id: matching(/^[\x21-\x7e]{1,512}$/, 'must be 1 to 512 visible ASCII characters').describe(
    'The id that the provider gave this gateway',
  ),
  client_secret: secret.describe('The secret that the provider gave this gateway'),
} as const;

/** The issuers of the presets that speak OpenID Connect. */
const presetIssuers: Readonly<Record<string, string>> = {
  google: 'https://accounts.google.com',
  gitlab: 'https://gitlab.com',
};

type IdentityKeys = ConfigOf<typeof identityShape>;

/** How users sign in, and how long their sessions last. */
export interface IdentityConfig extends Omit<IdentityKeys, 'mailer' | 'mailDir' | 'smtp' | 'providers'> {
  /** Sign cookies and links. */
  readonly secrets: RotatingSecret;
  /** Where mails are written. Where there is neither this nor a server, no user has a password. */
  readonly mailDir: string | undefined;
  /** The server that mails are handed to. */
  readonly smtp: SmtpConfig | undefined;
  /** Unique names. */
  readonly providers: readonly ProviderConfig[];
}

/** Whether the owner of a contract on a chain can prove its control there by signing in. */
export function canContractSignIn(identity: IdentityConfig | undefined, chainId: number): boolean {
  return identity?.siweRpcUrl !== undefined && identity.siweChainId === chainId;
}

/** An identity provider. */
export interface ProviderConfig {
  readonly name: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Of OpenID Connect, without a trailing slash; undefined for GitHub, which does not speak it. */
  readonly issuer: string | undefined;
}

/**
 * Reads `[identity]`: the accounts of users, which belong to the feature chat, and of operators, which belong to the console. Undefined
 * where the table is missing, neither is on, or after a report.
 */
export async function readIdentity(
  root: RootTable,
  isOn: boolean,
  reading: Reading,
): Promise<IdentityConfig | undefined> {
  if (!root.names('identity')) return undefined;
  const table = readTable(identityShape, root.values.identity, ['identity'], reading.report);
  const missing = 'is missing: a secret signs the sessions';
  const secrets = await readRotatingSecret(table, 'secret', { minChars: ownSecretChars, missing }, reading);
  const smtp = await readMailServer(table, reading);
  const providers = await readProviders(table.values.providers, reading);
  checkPublicUrl(root, isOn, reading);
  if (!isOn || table.whole === undefined || secrets === undefined) return undefined;
  const { mailer, mailDir, ...rest } = table.whole;
  return {
    ...rest,
    secrets,
    mailDir: mailer === 'folder' ? besideConfig(reading.file, mailDir) : undefined,
    smtp,
    providers,
  };
}

async function readMailServer(
  { values, names }: Table<typeof identityShape>,
  reading: Reading,
): Promise<SmtpConfig | undefined> {
  if (values.mailer === 'smtp') return readSmtp(values.smtp, reading);
  if (names('smtp')) reading.report.mistake(['identity', 'smtp'], 'would be ignored: set mailer = "smtp"');
  return undefined;
}

/** The cookie of a session must not cross a network unencrypted. */
function checkPublicUrl(root: RootTable, isOn: boolean, { report }: Reading): void {
  const { publicUrl: named, bindAddress: bind } = root.values;
  if (!isOn) return;
  // a client on the same machine reaches such an address too, but it is no loopback address
  if (!root.names('public_url') && bind !== undefined && !isLoopback(bind.host)) {
    report.mistake(
      ['bind_address'],
      'is not on loopback, so public_url must be named, with https: sessions have cookies, mails have links',
    );
    return;
  }
  const publicUrl = named ?? (bind && urlOfBind(bind));
  if (publicUrl === undefined) return;
  const { protocol, hostname, pathname } = new URL(publicUrl);
  if (protocol !== 'https:' && !isLoopback(hostname.replace(/^\[(.*)\]$/, '$1')))
    report.mistake(['public_url'], 'must be https: sessions have cookies (http only on loopback)');
  else if (pathname !== '/')
    report.mistake(['public_url'], 'must have no path: a cookie belongs to a whole host');
}

async function readProviders(raw: unknown, reading: Reading): Promise<ProviderConfig[]> {
  const providers: ProviderConfig[] = [];
  const names = new Set<string>();
  for (const table of readTables(providerShape, raw, ['identity', 'providers'], reading.report)) {
    const { at, whole } = table;
    const { name, preset } = table.values;
    if (name !== undefined && names.has(name)) reading.report.mistake([...at, 'name'], 'is taken by another');
    if (name !== undefined) names.add(name);
    if (table.names('preset') === table.names('issuer'))
      reading.report.mistake([...at, 'issuer'], 'either this or a preset must be named');
    if (preset === 'github' && name !== undefined && name !== preset)
      reading.report.mistake([...at, 'name'], 'must be "github" with that preset');
    const rules = { minChars: 1, missing: 'is missing' };
    const clientSecret = await readSecret(table, 'client_secret', rules, reading);
    if (whole === undefined || clientSecret === undefined) continue;
    const issuer = whole.issuer ?? presetIssuers[preset ?? ''];
    providers.push({ name: whole.name, clientId: whole.clientId, clientSecret, issuer });
  }
  return providers;
}
