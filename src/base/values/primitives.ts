/** 0x and hex digits, in lower case once parsed. */
export type Hex = `0x${string}`;
/** A lower-case 20-byte address: parsed once, compared as text. */
export type Address = Hex;
/** A chain's CAIP-2 id: `eip155:8453`. */
export type Caip2 = `eip155:${number}`;

const hex32 = /^0x[0-9a-f]{64}$/;
const address20 = /^0x[0-9a-f]{40}$/i;

export function isHex32(text: string): text is Hex {
  return hex32.test(text);
}

/** Lower-cases an address of 20 hex bytes; undefined for anything else. */
export function parseAddress(text: string): Address | undefined {
  return address20.test(text) ? (text.toLowerCase() as Address) : undefined;
}

/** The chain id of an `eip155` network; undefined for anything else. */
export function chainIdOf(network: string): number | undefined {
  const match = /^eip155:([1-9]\d{0,15})$/.exec(network);
  const id = match ? Number(match[1]) : undefined;
  return id !== undefined && Number.isSafeInteger(id) ? id : undefined;
}
