/** Stands for every text other than an address: no client chooses the key of its limit. */
const malformed = 'ip:malformed';

/** The network that a provider gives to one customer at least: for limits in memory, which no configuration changes. */
const networkBits = 64;

/**
 * A client's key, from its address. A client with an IPv6 address usually has a whole network of them, so addresses with the
 * same first `ipv6Prefix` bits are one client. An IPv4-mapped IPv6 address counts as the IPv4 address. What a proxy forwards
 * as an address need not be one: all requests with such a text are one client.
 */
export function clientOf(address: string, ipv6Prefix = networkBits): string {
  // the form of nearly every address, several times a request
  if (isIPv4(address)) return `ip:${address}`;
  const bare =
    /^\[([^\]]+)\](?::\d{1,5})?$/.exec(address)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(address)?.[1] ?? address;
  if (isIPv4(bare)) return `ip:${bare}`;
  const [unzoned = ''] = bare.split('%', 1);
  if (!isIPv6(unzoned)) return malformed;
  const groups = ipv6Groups(unzoned);
  const isMapped = groups.slice(0, 6).every((group, at) => group === (at === 5 ? 0xffff : 0));
  if (isMapped) return `ip:${groups.slice(6).flatMap(bytesOf).join('.')}`;
  const masked = groups.map((group, at) => group & maskOf(ipv6Prefix - 16 * at));
  return `ip:${masked.map((group) => group.toString(16)).join(':')}/${ipv6Prefix}`;
}

const byte = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const ipv4 = new RegExp(`^${byte}(?:\\.${byte}){3}$`);

function isIPv4(text: string): boolean {
  return ipv4.test(text);
}

function isIPv6(text: string): boolean {
  return /^[\da-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]`);
}

/** The eight groups of a well-formed address; the URL parser reads every notation. */
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
