/**
 * A client's key, from its address. A client with an IPv6 address usually has a whole network of them, so addresses with the
 * same first `ipv6Prefix` bits are one client. An IPv4-mapped IPv6 address counts as the IPv4 address.
 */
export function clientOf(address: string, ipv6Prefix: number): string {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? /^([\d.]+):\d+$/.exec(address)?.[1] ?? address;
  // of the addresses of sockets, only IPv6 ones contain a colon
  if (!bare.includes(':')) return `ip:${bare}`;
  const groups = ipv6Groups(bare.split('%', 1)[0] ?? '');
  const isMapped = groups.slice(0, 6).every((group, at) => group === (at === 5 ? 0xffff : 0));
  if (isMapped) return `ip:${groups.slice(6).flatMap(bytesOf).join('.')}`;
  const masked = groups.map((group, at) => group & maskOf(ipv6Prefix - 16 * at));
  return `ip:${masked.map((group) => group.toString(16)).join(':')}/${ipv6Prefix}`;
}

/** The eight groups; the URL parser reads every notation. */
function ipv6Groups(address: string): number[] {
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const left = head.split(':').filter(Boolean);
  const right = tail?.split(':').filter(Boolean) ?? [];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16));
}

function maskOf(bits: number): number {
  return (0xffff << (16 - Math.min(16, Math.max(0, bits)))) & 0xffff;
}

function bytesOf(group: number): number[] {
  return [group >> 8, group & 0xff];
}
