import { BlockList, isIP } from 'node:net';
import type { NodeRequest } from './node-exchange.ts';

/** The proxies that are trusted to name their clients. */
export interface ProxyList {
  has(address: string): boolean;
}

/** @throws TypeError for a text that is neither an address nor a CIDR range */
export function proxyList(ranges: readonly string[]): ProxyList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/');
    const version = isIP(network);
    const bits = prefix === undefined ? (version === 4 ? 32 : 128) : Number(prefix);
    if (version === 0 || !/^\d{1,3}$/.test(prefix ?? '0'))
      throw new TypeError(`${range} is neither an address nor a range`);
    list.addSubnet(network, bits, version === 4 ? 'ipv4' : 'ipv6');
  }
  return {
    has(address) {
      const plain = address.replace(/^::ffff:(?=[\d.]+$)/, '');
      return isIP(plain) !== 0 && list.check(plain, isIP(plain) === 4 ? 'ipv4' : 'ipv6');
    },
  };
}

/** The sender of a request: the connection's address or, after trusted proxies, the last address they name that is not a proxy. */
export function clientAddress({ socket, headers }: NodeRequest, proxies: ProxyList): string {
  const hops = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((hop) => hop.trim())
    .filter((hop) => isIP(hop) !== 0);
  let client = socket.remoteAddress ?? '';
  while (proxies.has(client)) {
    const before = hops.pop();
    if (before === undefined) break;
    client = before;
  }
  return client;
}
