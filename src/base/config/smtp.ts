import type { Reading } from './reading.ts';
import { secret } from './secret-source.ts';
import { readSecret } from './secrets.ts';
import { readTable } from './table.ts';
import { isLoopback } from './hosts.ts';
import { matching, oneOf, wholeNumber } from './values.ts';

export const smtpShape = {
  host: matching(/^[A-Za-z0-9.:-]{1,253}$/, 'must be a host name or an address').describe(
    'The server that takes the mails',
  ),
  port: wholeNumber(1, 65_535).optional().describe('By default 587, and 465 with `tls`'),
  security: oneOf(['starttls', 'tls', 'none'])
    .default('starttls')
    .describe(
      '`starttls`: a connection that is not encrypted then is not used. `none`: for a server on loopback alone',
    ),
  user: matching(/^[\x21-\x7e]{1,254}$/, 'must be 1 to 254 visible ASCII characters')
    .optional()
    .describe('The user at the server, with its password'),
  password: secret.describe('The password of the user'),
  from: matching(
    /^(?:[^\p{C}<>"@,]{1,100} <)?[^\s\p{C}<>"@,]{1,64}@[A-Za-z0-9.-]{1,253}>?$/u,
    'must be an address, such as "Tollbook <no-reply@gateway.example>"',
  ).describe('Whom the mails are from: an address, or a name and an address'),
} as const;

/** The server that takes the gateway's mails. */
export interface SmtpConfig {
  readonly host: string;
  readonly port: number;
  readonly security: 'starttls' | 'tls' | 'none';
  readonly login: { readonly user: string; readonly password: string } | undefined;
  /** Whom the mails are from: an address, or a name and an address. */
  readonly from: string;
}

/** Reads `[identity.smtp]`; undefined after a report. */
export async function readSmtp(raw: unknown, reading: Reading): Promise<SmtpConfig | undefined> {
  const at = ['identity', 'smtp'];
  const { report } = reading;
  if (raw === undefined) {
    report.mistake(at, 'is missing: mailer = "smtp" needs to know the server');
    return undefined;
  }
  const table = readTable(smtpShape, raw, at, report);
  const password = await readSecret(table, 'password', { minChars: 1 }, reading);
  const { host, security, user } = table.values;
  if (security === 'none' && host !== undefined && host !== 'localhost' && !isLoopback(host))
    report.mistake(
      [...at, 'security'],
      'must be "starttls" or "tls": a mail has a link that signs in (none only on loopback)',
    );
  const hasPassword = table.names('password');
  if (user !== undefined && !hasPassword)
    report.mistake([...at, 'password'], 'is missing: the user needs one');
  if (user === undefined && hasPassword)
    report.mistake([...at, 'user'], 'is missing: the password is of nobody');
  if (table.whole === undefined) return undefined;
  const { port = security === 'tls' ? 465 : 587, ...whole } = table.whole;
  const login = user === undefined || password === undefined ? undefined : { user, password };
  return { host: whole.host, port, security: whole.security, login, from: whole.from };
}
