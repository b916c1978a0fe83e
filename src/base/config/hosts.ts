import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

const privateRanges = new BlockList();
privateRanges.addSubnet('10.0.0.0', 8, 'ipv4');
privateRanges.addSubnet('172.16.0.0', 12, 'ipv4');
privateRanges.addSubnet('192.168.0.0', 16, 'ipv4');
privateRanges.addSubnet('fc00::', 7, 'ipv6');
const loopbackRanges = new BlockList();
loopbackRanges.addSubnet('127.0.0.0', 8, 'ipv4');
loopbackRanges.addAddress('::1', 'ipv6');

/** What anyone on the way of a plain request can do, by the end of the key that names its URL. */
const plainRisks = [
  ['rpc_url', 'change what the gateway believes of the chain, and so have unpaid calls delivered'],
  ['public_url', 'change the offers that clients get, and so whom they pay'],
  ['url', 'read the calls and the bearer token'],
] as const;

/**
 * What to warn of where a key names plain http to a host that is not this machine; undefined if it does not. It is asked for every key
 * of the file, so that no URL can be forgotten: one that must be https was refused before, and any other decides about money.
 */
export function plainHttpWarning(key: string, value: unknown): string | undefined {
  const risk = plainRisks.find(([end]) => key.endsWith(end))?.[1];
  if (risk === undefined || typeof value !== 'string' || value === 'public') return undefined;
  if (isEncryptedOrLocal(new URL(value))) return undefined;
  return `is plain http to another host: anyone on the way can ${risk}`;
}

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

/** Whether requests to a URL are encrypted, or stay on this machine. */
export function isEncryptedOrLocal(url: URL): boolean {
  return url.protocol === 'https:' || isLoopback(hostOf(url));
}

/** Private ranges, and names that only a private network resolves: one label, `.internal`, `.local`. */
export function isPrivate(host: string): boolean {
  if (isIP(host) !== 0) return isWithin(privateRanges, host);
  return !host.includes('.') || /\.(?:internal|local)$/.test(host);
}

function isWithin(ranges: BlockList, host: string): boolean {
  const family = isIP(host);
  return family !== 0 && ranges.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

/** Whether a text is a name of a host, or its IPv4 address. */
export function isHost(host: string): boolean {
  if (isIPv4(host)) return true;
  // A name of digits and dots alone is a mistyped IPv4 address.
  return /^(?=.{1,253}$)[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i.test(host) && !/^[\d.]+$/.test(host);
}

/** The host of a URL; IPv6 without brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}
