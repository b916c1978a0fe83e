import { type LookupAddress, type LookupOptions, promises } from 'node:dns';
import { BlockList, isIP } from 'node:net';
import { callbackify } from 'node:util';

/** Of each question. */
const nameServerMs = 2_000;

const notPublic = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // where Azure answers its machines
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  notPublic.addSubnet(network, prefix, 'ipv4');

// global unicast alone, without ranges that lead to IPv4 addresses (6to4, Teredo) or are for documentation
const publicIpv6 = new BlockList();
publicIpv6.addSubnet('2000::', 3, 'ipv6');
const specialIpv6 = new BlockList();
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  specialIpv6.addSubnet(network, prefix, 'ipv6');

/** Whether an address is of the public internet: a stranger may make the gateway call only these. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !notPublic.check(address, 'ipv4');
  return family === 6 && publicIpv6.check(address, 'ipv6') && !specialIpv6.check(address, 'ipv6');
}

/** Whether an address may be called. */
export type AddressRule = (address: string) => boolean;

/** The host of a URL, without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

type Callback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

/**
 * Resolves names for a connection, and refuses those of which any address may not be called. The connection goes to the address that
 * was checked, so that a name cannot resolve to another one in between. It asks the name servers itself: the system's look-up
 * takes one of the few threads of this process, and name servers of customers that never answer would take them all.
 */
export function guardedLookup(
  mayCall: AddressRule,
  names = new promises.Resolver({ timeout: nameServerMs, tries: 2 }),
) {
  return (hostname: string, options: LookupOptions, done: Callback): void => {
    callbackify(addressesOf)(hostname, names, (_, addresses) => {
      const [first] = addresses;
      if (!first) return done(new Error('The host has no address'), []);
      if (!addresses.every(({ address }) => mayCall(address)))
        return done(new Error('The host has an address that may not be called'), []);
      return options.all === true ? done(null, addresses) : done(null, first.address, first.family);
    });
  };
}

async function addressesOf(host: string, names: promises.Resolver): Promise<LookupAddress[]> {
  if (host === 'localhost')
    return [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ];
  const [ipv4, ipv6] = await Promise.allSettled([names.resolve4(host), names.resolve6(host)]);
  return [...foundIn(ipv4, 4), ...foundIn(ipv6, 6)];
}

function foundIn(answer: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : [];
}
