import type { RotatingSecret } from '../values/rotating-secret.ts';
import { z } from 'zod';
import type { Constants } from './constants.ts';
import { besideConfig } from './files.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { rotatingSecret, secret } from './secret-source.ts';
import { ownSecretChars, readRotatingSecret, readSecret } from './secrets.ts';
import { readSmtpUrl, type SmtpConfig } from './smtp.ts';
import { type ConfigOf, readTable, readTables, type Table } from './table.ts';
import { isLoopback, urlOfBind } from './hosts.ts';
import { origin, secureBaseUrl } from './urls.ts';
import { filePath, matching, plainName, text, wholeNumber, Wrong } from './values.ts';

const maxChainId = Number.MAX_SAFE_INTEGER;
/** GitHub does not speak OpenID Connect. */
const knownIssuers = new Map<string, string | undefined>([
  ['google', 'https://accounts.google.com'],
  ['gitlab', 'https://gitlab.com'],
  ['github', undefined],
]);

function readIssuer(
  raw: string,
): { readonly known: string | undefined; readonly url: string | undefined } | Wrong {
  if (knownIssuers.has(raw)) return { known: raw, url: knownIssuers.get(raw) };
  const url = secureBaseUrl.safeParse(raw);
  if (url.success) return { known: undefined, url: url.data };
  return new Wrong(
    `${url.error.issues[0]?.message}; the known ones are ${[...knownIssuers.keys()].join(', ')}`,
  );
}

export const identityShape = {
  secret: rotatingSecret.describe('Signs sessions and links'),
  trusted_origins: z
    .array(origin, 'must be an array of origins')
    .default([])
    .describe(
      "Other origins whose pages may use their visitor's cookie below `/api` and `/v1`, and that wallets may sign in for",
    ),
  siwe_chain_id: wholeNumber(1, maxChainId)
    .default(1)
    .describe('Chain that wallets sign for; contract wallets need its RPC'),
  mail_dir: filePath.optional().describe('Folder for mails that another program sends'),
  smtp_url: secret.describe(
    '`smtps://USER:PASSWORD@HOST:PORT`, or `smtp://` with STARTTLS. Without it and `mail_dir` there are no passwords',
  ),
  mail_from: matching(
    /^(?:[^\p{C}<>"@,]{1,100} <)?[^\s\p{C}<>"@,]{1,64}@[A-Za-z0-9.-]{1,253}>?$/u,
    'must be an address, such as "Tollbook <no-reply@gateway.example>"',
  )
    .optional()
    .describe('Sender, with `smtp_url`'),
  providers: z.unknown(),
} as const;

export const providerShape = {
  name: plainName.describe('Unique; the end of the redirect URI'),
  issuer: text(readIssuer)
    .meta({ type: '"google", "gitlab", "github" or https URL' })
    .describe('A known provider, or the issuer of another'),
  client_id: matching(/^[\x21-\x7e]{1,512}$/, 'must be 1 to 512 visible ASCII characters').describe(
    'From the provider',
  ),
  client_secret: secret.describe('From the provider'),
} as const;

type IdentityKeys = ConfigOf<typeof identityShape>;

/** How users sign in, and how long their sessions last. */
export interface IdentityConfig
  extends Omit<IdentityKeys, 'mailDir' | 'mailFrom' | 'providers'>, Readonly<Constants['identity']> {
  /** Sign cookies and links. */
  readonly secrets: RotatingSecret;
  /** Where contract wallets' signatures are checked; without it they cannot sign in. */
  readonly siweRpcUrl: string | undefined;
  /** Where mails are written. If there is neither this nor a server, no user has a password. */
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
 * Reads `[identity]`: the accounts of users, which belong to the feature chat and to the pages, and of operators, which belong to the
 * console. Undefined if the table is missing, none of these is on, or after a report.
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
  const { mailDir, mailFrom: _, ...rest } = table.whole;
  return {
    ...rest,
    ...reading.constants.identity,
    secrets,
    siweRpcUrl: reading.networks.get(`eip155:${rest.siweChainId}`)?.rpcUrl,
    mailDir: mailDir === undefined ? undefined : besideConfig(reading.file, mailDir),
    smtp,
    providers,
  };
}

async function readMailServer(
  table: Table<typeof identityShape>,
  reading: Reading,
): Promise<SmtpConfig | undefined> {
  const { at, values, names } = table;
  const { report } = reading;
  if (!names('smtp_url')) {
    if (names('mail_from')) report.mistake([...at, 'mail_from'], 'would be ignored: smtp_url is missing');
    return undefined;
  }
  if (names('mail_dir')) report.mistake([...at, 'mail_dir'], 'excludes smtp_url: name one of them');
  if (!names('mail_from'))
    report.mistake([...at, 'mail_from'], 'is missing: mails that smtp_url sends need one');
  const url = await readSecret(table, 'smtp_url', { minChars: 1 }, reading);
  return url === undefined
    ? undefined
    : readSmtpUrl(url, values.mailFrom ?? '', [...at, 'smtp_url'], reading);
}

/** The cookie of a session must not cross a network unencrypted. */
function checkPublicUrl(root: RootTable, isOn: boolean, { report }: Reading): void {
  const { publicUrl: named, bindAddress: bind } = root.values;
  if (!isOn) return;
  // a client on the same machine reaches such an address too, but it is not a loopback address
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
    const { name, issuer } = table.values;
    if (name !== undefined && names.has(name)) reading.report.mistake([...at, 'name'], 'is taken by another');
    if (name !== undefined) names.add(name);
    if (issuer?.known === 'github' && name !== undefined && name !== 'github')
      reading.report.mistake([...at, 'name'], 'must be "github" with that issuer');
    const rules = { minChars: 1, missing: 'is missing' };
    const clientSecret = await readSecret(table, 'client_secret', rules, reading);
    if (whole === undefined || clientSecret === undefined) continue;
    providers.push({ name: whole.name, clientId: whole.clientId, clientSecret, issuer: whole.issuer.url });
  }
  return providers;
}
