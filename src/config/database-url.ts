import type { Environment } from './environment.ts';
import { ConfigError } from './mistakes.ts';

/** The PostgreSQL URL in DATABASE_URL. Throws a ConfigError, which never repeats the URL: it contains a password. */
export function readDatabaseUrl(env: Environment): string {
  const url = env['DATABASE_URL'];
  if (url === undefined || url === '')
    throw mistaken('is not set: it names the PostgreSQL database of the ledger');
  if (namesSeveralHosts(url))
    throw mistaken(
      'names several hosts: name one address that leads to the primary, such as that of HAProxy (docs/operations/high-availability.md)',
    );
  if (!isPostgresUrl(url))
    throw mistaken('is not a PostgreSQL URL (postgres://user:password@host:5432/database)');
  return url;
}

/** pg also takes an empty host (`postgres://user@/db?host=/run/postgresql`), which no URL parser does. */
function isPostgresUrl(url: string): boolean {
  return /^postgres(?:ql)?:\/\/\S*$/i.test(url) && URL.canParse(url.replace('@/', '@localhost/'));
}

/** As libpq takes it. The driver would look up the whole list as one name. */
function namesSeveralHosts(url: string): boolean {
  const authority = /^\w+:\/\/([^/?]*)/.exec(url)?.[1] ?? '';
  return authority.slice(authority.lastIndexOf('@') + 1).includes(',') || /[?&]host=[^&]*,/.test(url);
}

function mistaken(message: string): ConfigError {
  return new ConfigError([{ path: 'DATABASE_URL', file: 'environment', message }]);
}
