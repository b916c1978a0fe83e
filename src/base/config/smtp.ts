import { isIPv6 } from 'node:net';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { hostOf, isHost, isLoopback } from './hosts.ts';
import { Wrong } from './values.ts';

/** The server that takes the gateway's mails. */
export interface SmtpConfig {
  readonly host: string;
  readonly port: number;
  /** `starttls`: the connection is used only once it is encrypted. `none`: to this machine. */
  readonly security: 'starttls' | 'tls' | 'none';
  readonly login: { readonly user: string; readonly password: string } | undefined;
  /** Whom the mails are from: an address, or a name and an address. */
  readonly from: string;
}

/** Reads the URL of a server, which is a secret: no message contains it. Undefined after a report. */
export function readSmtpUrl(url: string, from: string, at: Path, reading: Reading): SmtpConfig | undefined {
  // it is then no URL
  if (reading.skippedSecrets) return undefined;
  const server = toServer(url);
  if (!(server instanceof Wrong)) return { ...server, from };
  reading.report.mistake(at, `names a secret that ${server.message}`);
  return undefined;
}

function toServer(text: string): Omit<SmtpConfig, 'from'> | Wrong {
  const form = new Wrong('must be smtps://USER:PASSWORD@HOST:PORT, or smtp:// with STARTTLS');
  const url = URL.parse(text);
  if (!url || !/^smtps?:$/.test(url.protocol) || !/^\/?$/.test(url.pathname + url.search + url.hash))
    return form;
  const host = hostOf(url);
  if (!isHost(host) && !isIPv6(host)) return form;
  const isTls = url.protocol === 'smtps:';
  const port = Number(url.port || (isTls ? 465 : 587));
  const [user, password] = [decoded(url.username), decoded(url.password)];
  if (user === undefined || password === undefined) return form;
  if ((user === '') !== (password === '')) return new Wrong('must have a user and a password, or neither');
  const plain = isLoopback(host) ? 'none' : 'starttls';
  return { host, port, security: isTls ? 'tls' : plain, login: user === '' ? undefined : { user, password } };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
