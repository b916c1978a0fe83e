import type { Environment } from './environment.ts';
import { readEnvironmentSecret } from './environment-secret.ts';
import { readText } from './files.ts';
import { ConfigError, formatMistake } from './mistakes.ts';
import type { ReadFile } from './reading.ts';
import { isLoopback } from './hosts.ts';

const urlVariable = 'DATABASE_URL';
const replicaVariable = 'REPLICA_URL';
const passwordVariable = 'PGPASSWORD';

/** Whether the environment names a database at all. */
export function namesDatabase(env: Environment): boolean {
  return [urlVariable, `${urlVariable}_FILE`].some((name) => (env[name] ?? '') !== '');
}

/**
 * The PostgreSQL URL of DATABASE_URL, or of the file that DATABASE_URL_FILE names. If it has no password, it gets that of
 * PGPASSWORD or PGPASSWORD_FILE. Throws a ConfigError, which never repeats the URL: it contains a password.
 */
export async function readDatabaseUrl(env: Environment, readFile: ReadFile = readText): Promise<string> {
  const url = (await readVariable(urlVariable, env, readFile))?.trim();
  if (url === undefined) throw mistaken('is not set: it names the PostgreSQL database of the ledger');
  return usable(url, urlVariable, env, readFile);
}

/**
 * The PostgreSQL URLs of the read replicas, one for each host that REPLICA_URL names, or the file that REPLICA_URL_FILE names. None if
 * it is not set. Passwords and errors are as those of `readDatabaseUrl`.
 */
export async function readReplicaUrls(
  env: Environment,
  readFile: ReadFile = readText,
): Promise<readonly string[]> {
  const text = (await readVariable(replicaVariable, env, readFile))?.trim();
  if (text === undefined) return [];
  const { start, list } = hostsOf(text);
  const [before, after] = [text.slice(0, start), text.slice(start + list.length)];
  const urls = list.split(',').map((host) => `${before}${host}${after}`);
  return Promise.all(urls.map((url) => usable(url, replicaVariable, env, readFile)));
}

/** The URL with the password of the environment, if it has none. */
async function usable(url: string, variable: string, env: Environment, readFile: ReadFile): Promise<string> {
  const wrong = whatIsWrong(url);
  if (wrong !== undefined) throw mistaken(wrong, variable);
  if (hasPassword(url)) return url;
  const password = await readVariable(passwordVariable, env, readFile);
  if (password === undefined) return url;
  return `${url}${url.includes('?') ? '&' : '?'}password=${encodeURIComponent(password)}`;
}

/** The driver takes them for `verify-full`, unless an option makes it follow libpq. */
const verifying = ['prefer', 'require', 'verify-ca'];

/** What to warn of before a gateway uses a URL of `readDatabaseUrl`; undefined for nothing. Never repeats the URL. */
export function databaseWarning(url: string, env: Environment): string | undefined {
  return unverifiedWarning(urlVariable, url, env);
}

/** The same of a URL of `readReplicaUrls`. */
export function replicaWarning(url: string, env: Environment): string | undefined {
  return unverifiedWarning(replicaVariable, url, env);
}

function unverifiedWarning(variable: string, url: string, env: Environment): string | undefined {
  const { authority, rest } = partsOf(url);
  const parameters = new URLSearchParams(rest.slice(rest.indexOf('?') + 1));
  const named = authority.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '');
  const host = parameters.get('host') ?? decodeURIComponent(named.replace(/^\[(.*)\]$/, '$1'));
  const mode = parameters.get('sslmode') ?? env['PGSSLMODE'] ?? 'disable';
  const isVerified =
    mode === 'verify-full' || (verifying.includes(mode) && !parameters.has('uselibpqcompat'));
  const isLocal = host.startsWith('/') || isLoopback(host === '' ? (env['PGHOST'] ?? 'localhost') : host);
  if (isVerified || isLocal) return undefined;
  const message =
    'names another host without a verified certificate: anyone on the way can read the ledger and change what is recorded of a payment. ' +
    'Add sslmode=verify-full (docs/operations/tls.md)';
  return formatMistake({ path: variable, file: 'environment', message });
}

async function readVariable(name: string, env: Environment, readFile: ReadFile): Promise<string | undefined> {
  const secret = await readEnvironmentSecret(name, env, readFile);
  if (secret.kind === 'wrong') throw mistaken(secret.message, secret.variable);
  return secret.kind === 'found' ? secret.value : undefined;
}

function whatIsWrong(url: string): string | undefined {
  if (isWronglyEncoded(url))
    return (
      'has a character that ends a part of a URL or begins a code, probably in its password: write # as %23, % as %25, / as %2F, ' +
      `? as %3F, @ as %40 and a blank as %20; or omit the password and set ${passwordVariable} to it, unencoded`
    );
  if (hostsOf(url).list.includes(','))
    return 'names several hosts: name one address that leads to the primary, such as that of HAProxy (docs/operations/high-availability.md)';
  if (!isPostgresUrl(url)) return 'is not a PostgreSQL URL (postgres://user:password@host:5432/database)';
  return undefined;
}

/** The driver would take another host, user or password from it than was meant, or change its codes. */
function isWronglyEncoded(url: string): boolean {
  const { authority, rest } = partsOf(url);
  const userInfo = authority.slice(0, Math.max(authority.lastIndexOf('@'), 0));
  return /[\s#]|%(?![0-9a-f]{2})/i.test(url) || rest.includes('@') || !isDecodable(userInfo);
}

/** Whether its codes are UTF-8. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** `user:password@host:port`, and the rest of the URL. */
function partsOf(url: string): { readonly authority: string; readonly rest: string } {
  const [, authority = '', rest = ''] = /^\w+:\/\/([^/?]*)(.*)$/s.exec(url) ?? [];
  return { authority, rest };
}

function hasPassword(url: string): boolean {
  const { authority, rest } = partsOf(url);
  const userInfo = authority.slice(0, Math.max(authority.lastIndexOf('@'), 0));
  return /:./.test(userInfo) || /[?&]password=./.test(rest);
}

/** pg also takes an empty host (`postgres://user@/db?host=/run/postgresql`), which no URL parser does. */
function isPostgresUrl(url: string): boolean {
  return /^postgres(?:ql)?:\/\/\S*$/i.test(url) && URL.canParse(url.replace('@/', '@localhost/'));
}

/** Hosts as libpq takes them, and where they are: before the path, or in the parameter `host`. The driver looks a list up as one name. */
function hostsOf(url: string): { readonly start: number; readonly list: string } {
  const { authority } = partsOf(url);
  const named = authority.slice(authority.lastIndexOf('@') + 1);
  const parameter = named === '' ? /(?<=[?&]host=)[^&]*/.exec(url) : null;
  if (parameter) return { start: parameter.index, list: parameter[0] };
  return { start: url.indexOf('//') + 2 + authority.length - named.length, list: named };
}

function mistaken(message: string, variable = urlVariable): ConfigError {
  return new ConfigError([{ path: variable, file: 'environment', message }]);
}
