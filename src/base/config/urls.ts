import { isIP, isIPv6 } from 'node:net';
import { hostOf, isEncryptedOrLocal, isHost, isLoopback, isPrivate } from './hosts.ts';
import { type JobId, parseJobId } from '../values/job.ts';
import { text, Wrong } from './values.ts';

/** An http(s) address of a chain's RPC, kept as written. */
export const rpcUrl = text((raw) => {
  const url = readHttpUrl(raw);
  return url instanceof Wrong ? url : raw;
}).meta({ type: 'URL' });

/** The same, or `public` for the one that the chain's makers run. */
export const rpcUrlOrPublic = text((raw) => {
  const url = raw === 'public' ? undefined : readHttpUrl(raw);
  return url instanceof Wrong ? url : raw;
}).meta({ type: 'URL or "public"' });

/** What paths are appended to: no query, no trailing slash. */
export const baseUrl = text(readBaseUrl).meta({ type: 'URL' });

/** As a browser sends it: scheme, host and port alone, encrypted or on this machine. */
export const origin = text((raw) => {
  const base = readBaseUrl(raw);
  if (base instanceof Wrong) return base;
  const url = new URL(base);
  return url.origin === raw && isEncryptedOrLocal(url)
    ? raw
    : new Wrong(
        'must be an origin such as "https://app.example": https, or http on loopback, without a path',
      );
}).meta({ type: 'origin, as "https://app.example"' });

/** A base URL of a peer that is sent payments or secrets: https, unless it is on this machine. */
export const secureBaseUrl = text((raw) => {
  const base = readBaseUrl(raw);
  if (base instanceof Wrong) return base;
  return isEncryptedOrLocal(new URL(base)) ? base : new Wrong('must be https, or http on loopback');
}).meta({ type: 'https URL' });

/** A runner's push address, kept as written: https, or http on loopback or a private network. */
export const pushUrl = text((raw) => {
  const url = readHttpUrl(raw);
  return url instanceof Wrong ? url : (refusePublicPlain(url) ?? raw);
}).meta({ type: 'URL: https, or http on a private network' });

/** A base URL of the operator's own infrastructure: https, or http on loopback or a private network. */
export const privateBaseUrl = text(readPrivateBaseUrl).meta({
  type: 'URL: https, or http on a private network',
});

/** The upstream of a route that sells the completions of this gateway itself. */
export const chatUpstream = 'chat';

/** The same, `chat` for the completions of this gateway itself, or a job as `job:7/0`, whose runner makes the answers. */
export const soldUpstream = text((raw) => (isOwnUpstream(raw) ? raw : readPrivateBaseUrl(raw))).meta({
  type: 'URL: https, or http on a private network; "chat"; or a job, as "job:7/0"',
});

/** The job whose runner makes the answers; undefined for any other upstream. */
export function jobOfUpstream(upstream: string): JobId | undefined {
  const [, service = '', index = ''] = /^job:(\d+)\/(\d+)$/.exec(upstream) ?? [];
  return parseJobId(service, index);
}

/** Whether an upstream is this gateway, and no server. */
export function isOwnUpstream(upstream: string): boolean {
  return upstream === chatUpstream || jobOfUpstream(upstream) !== undefined;
}

/** Where alerts are posted, kept as written: https, or http on loopback. */
export const webhookUrl = text((raw) => {
  const url = readHttpUrl(raw);
  if (url instanceof Wrong) return url;
  return isEncryptedOrLocal(url) ? raw : new Wrong('must be https, or http on loopback');
}).meta({ type: 'https URL' });

/** A server of a NATS broker: tls, or nats on loopback or a private network. */
export const brokerUrl = text((raw) => {
  const [, scheme, host = '', port = '4222'] =
    /^(nats|tls):\/\/(\[[0-9a-f:.]+\]|[^\s/\\@:[\]?#]+)(?::(\d{1,5}))?$/i.exec(raw) ?? [];
  const name = host.replace(/^\[(.*)\]$/, '$1');
  if (scheme === undefined || Number(port) > 65_535 || !(isHost(name) || isIPv6(name)))
    return new Wrong('must be the URL of a NATS server without credentials, such as "nats://10.0.0.5:4222"');
  if (scheme.toLowerCase() === 'tls' || isLoopback(name) || isPrivate(name)) return raw;
  return new Wrong('must be tls, or nats on loopback or a private network');
}).meta({ type: 'URL: tls, or nats on a private network' });

/** `host:port` or `[ipv6]:port`; port 0 lets the system choose. */
export const bindAddress = text((raw): { readonly host: string; readonly port: number } | Wrong => {
  const match = /^(?:\[([^\]%]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(raw);
  const [, ipv6, plain, digits] = match ?? [];
  const host = ipv6 ?? plain;
  const port = Number(digits);
  if (host === undefined || !(ipv6 === undefined ? isHost(host) : isIPv6(host))) {
    return new Wrong('must be host:port, such as "0.0.0.0:8402" or "[::1]:8402"');
  }
  return port <= 65_535 ? { host, port } : new Wrong('has a port above 65535');
}).meta({ type: 'host:port' });

/** A proxy's address, or a range of them in CIDR form. */
export const proxyRange = text((raw) => {
  const [base = '', bits, ...rest] = raw.split('/');
  const widest = { 0: -1, 4: 32, 6: 128 }[isIP(base)] ?? -1;
  const isRange = bits === undefined || (/^(?:0|[1-9]\d{0,2})$/.test(bits) && Number(bits) <= widest);
  const isGood = widest > 0 && !base.includes('%') && isRange && rest.length === 0;
  return isGood ? raw : new Wrong('must be an address or a range, such as "127.0.0.1" or "10.0.0.0/8"');
}).meta({ type: 'address or range' });

function refusePublicPlain(url: URL): Wrong | undefined {
  if (isEncryptedOrLocal(url) || isPrivate(hostOf(url))) return undefined;
  return new Wrong('must be https, or http on loopback or a private network');
}

function readPrivateBaseUrl(raw: string): string | Wrong {
  const base = readBaseUrl(raw);
  return base instanceof Wrong ? base : (refusePublicPlain(new URL(base)) ?? base);
}

function readBaseUrl(raw: string): string | Wrong {
  const url = readHttpUrl(raw);
  if (url instanceof Wrong) return url;
  return !raw.includes('?')
    ? url.href.replace(/\/+$/, '')
    : new Wrong('must not have a query: paths are appended to it');
}

function readHttpUrl(raw: string): URL | Wrong {
  // The URL parser forgives too much: blanks within, a missing slash.
  if (!/^https?:\/\/[^\s\\]+$/i.test(raw) || !URL.canParse(raw))
    return new Wrong('is not an http or https URL');
  const url = new URL(raw);
  if (url.username !== '' || url.password !== '') {
    return new Wrong('must not contain credentials: a secret has its own key');
  }
  return url.hash === '' && !raw.includes('#') ? url : new Wrong('must not have a fragment');
}
