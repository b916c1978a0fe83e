import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import { text, Wrong } from './values.ts';

const privateRanges = new BlockList();
privateRanges.addSubnet('10.0.0.0', 8, 'ipv4');
privateRanges.addSubnet('172.16.0.0', 12, 'ipv4');
privateRanges.addSubnet('192.168.0.0', 16, 'ipv4');
privateRanges.addSubnet('fc00::', 7, 'ipv6');
const loopbackRanges = new BlockList();
loopbackRanges.addSubnet('127.0.0.0', 8, 'ipv4');
loopbackRanges.addAddress('::1', 'ipv6');

/** An http(s) address of a chain's RPC, kept as written. */
export const rpcUrl = text((raw) => {
  const url = readHttpUrl(raw);
  return url instanceof Wrong ? url : raw;
});

/** What paths are appended to: no query, no trailing slash. */
export const baseUrl = text(readBaseUrl);

/** A base URL of a peer that is sent payments or secrets: https, unless it is on this machine. */
export const secureBaseUrl = text((raw) => {
  const base = readBaseUrl(raw);
  if (base instanceof Wrong) return base;
  return isEncryptedOrLocal(new URL(base)) ? base : new Wrong('must be https, or http on loopback');
});

/** A runner's push address, kept as written: https, or http on loopback or a private network. */
export const pushUrl = text((raw) => {
  const url = readHttpUrl(raw);
  return url instanceof Wrong ? url : (refusePublicPlain(url) ?? raw);
});

/** A base URL of the operator's own infrastructure: https, or http on loopback or a private network. */
export const privateBaseUrl = text((raw) => {
  const base = readBaseUrl(raw);
  return base instanceof Wrong ? base : (refusePublicPlain(new URL(base)) ?? base);
});

/** Where alerts are posted, kept as written: https, or http on loopback. */
export const webhookUrl = text((raw) => {
  const url = readHttpUrl(raw);
  if (url instanceof Wrong) return url;
  return isEncryptedOrLocal(url) ? raw : new Wrong('must be https, or http on loopback');
});

/** A server of a NATS broker: tls, or nats on loopback or a private network. */
export const brokerUrl = text((raw) => {
  const [, scheme, host = '', port = '4222'] =
    /^(nats|tls):\/\/(\[[0-9a-f:.]+\]|[^\s/\\@:[\]?#]+)(?::(\d{1,5}))?$/i.exec(raw) ?? [];
  const name = host.replace(/^\[(.*)\]$/, '$1');
  if (scheme === undefined || Number(port) > 65_535 || !(isHost(name) || isIPv6(name)))
    return new Wrong('must be the URL of a NATS server without credentials, such as "nats://10.0.0.5:4222"');
  if (scheme.toLowerCase() === 'tls' || isLoopback(name) || isPrivate(name)) return raw;
  return new Wrong('must be tls, or nats on loopback or a private network');
});

/** What anyone on the way of a plain request can do, by the end of the key that names its URL. */
const plainRisks = [
  ['rpc_url', 'change what the gateway believes of the chain, and so have unpaid calls delivered'],
  ['public_url', 'change the offers that clients get, and so whom they pay'],
  ['url', 'read the calls and the bearer token'],
] as const;

/**
 * What to warn of where a key names plain http to a host that is not this machine; undefined where it does not. It is asked for every key
 * of the file, so that no URL can be forgotten: one that must be https was refused before, and any other decides about money.
 */
export function plainHttpWarning(key: string, value: unknown): string | undefined {
  const risk = plainRisks.find(([end]) => key.endsWith(end))?.[1];
  if (risk === undefined || typeof value !== 'string' || isEncryptedOrLocal(new URL(value))) return undefined;
  return `is plain http to another host: anyone on the way can ${risk}`;
}

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
});

/** A proxy's address, or a range of them in CIDR form. */
export const proxyRange = text((raw) => {
  const [base = '', bits, ...rest] = raw.split('/');
  const widest = { 0: -1, 4: 32, 6: 128 }[isIP(base)] ?? -1;
  const isRange = bits === undefined || (/^(?:0|[1-9]\d{0,2})$/.test(bits) && Number(bits) <= widest);
  const isGood = widest > 0 && !base.includes('%') && isRange && rest.length === 0;
  return isGood ? raw : new Wrong('must be an address or a range, such as "127.0.0.1" or "10.0.0.0/8"');
});

/** The http address of a bound host and port, as a client on the same machine reaches it. */
export function urlOfBind(bind: { readonly host: string; readonly port: number }): string {
  const reachable: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  const host = reachable[bind.host] ?? bind.host;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${bind.port}`;
}

/** Whether a host (IPv6 without brackets) is this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || isWithin(loopbackRanges, host);
}

function refusePublicPlain(url: URL): Wrong | undefined {
  if (isEncryptedOrLocal(url) || isPrivate(hostOf(url))) return undefined;
  return new Wrong('must be https, or http on loopback or a private network');
}

function isEncryptedOrLocal(url: URL): boolean {
  return url.protocol === 'https:' || isLoopback(hostOf(url));
}

/** Private ranges, and names that only a private network resolves: one label, `.internal`, `.local`. */
function isPrivate(host: string): boolean {
  if (isIP(host) !== 0) return isWithin(privateRanges, host);
  return !host.includes('.') || /\.(?:internal|local)$/.test(host);
}

function isWithin(ranges: BlockList, host: string): boolean {
  const family = isIP(host);
  return family !== 0 && ranges.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

function isHost(host: string): boolean {
  if (isIPv4(host)) return true;
  // A name of digits and dots alone is a mistyped IPv4 address.
  return /^(?=.{1,253}$)[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i.test(host) && !/^[\d.]+$/.test(host);
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
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
    return new Wrong('must not contain credentials: secrets are named by an environment variable or a file');
  }
  return url.hash === '' && !raw.includes('#') ? url : new Wrong('must not have a fragment');
}
