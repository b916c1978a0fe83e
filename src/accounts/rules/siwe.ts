import { isDeepStrictEqual } from 'node:util';
import { getAddress, isAddress, stringToBytes } from 'viem/utils';
import { z } from 'zod';
import { personalSignDigest } from '../../payments/rules/caller-signature.ts';
import type { Address } from '../../base/values/primitives.ts';
import { parseSignature, recoverSigner } from '../../base/values/ethereum-signature.ts';

/** A message of Sign-In with Ethereum (EIP-4361). Texts are unchanged from the message; its version is always 1. */
export interface SiweMessage {
  /** Of the address that the domain belongs to, without `://`. */
  readonly scheme?: string;
  /** Host, and port if there is one; never a user. */
  readonly domain: string;
  /** Lower case; in the message it has its checksum (EIP-55). */
  readonly address: Address;
  readonly statement?: string;
  readonly uri: string;
  readonly chainId: number;
  /** At least eight letters and digits. */
  readonly nonce: string;
  /** RFC 3339, as all times here. */
  readonly issuedAt: string;
  readonly expirationTime?: string;
  readonly notBefore?: string;
  /** May be empty. */
  readonly requestId?: string;
  readonly resources?: readonly string[];
}

const maxChars = 8_192;
const maxResources = 64;

const scheme = String.raw`[A-Za-z][A-Za-z0-9+.-]*`;
const host = String.raw`(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])`;
const domain = String.raw`${host}(?::\d{1,5})?`;
const percent = '%[0-9A-Fa-f]{2}';
const uri = String.raw`${scheme}:(?:[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=-]|${percent})+`;
const statement = String.raw`[A-Za-z0-9._~:/?#[\]@!$&'()*+,;= -]+`;
const requestId = String.raw`(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|${percent})*`;
const rfc3339 = z.iso.datetime({ offset: true });
const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)`;

/** Line for line as the standard's ABNF has it: nothing is trimmed, nothing may come in another order. */
const grammar = new RegExp(
  [
    `^(?:(?<scheme>${scheme})://)?(?<domain>${domain}) wants you to sign in with your Ethereum account:`,
    String.raw`\n(?<address>0x[0-9A-Fa-f]{40})\n`,
    String.raw`\n(?:(?<statement>${statement})\n)?`,
    String.raw`\nURI: (?<uri>${uri})`,
    String.raw`\nVersion: 1`,
    String.raw`\nChain ID: (?<chainId>[1-9]\d{0,15})`,
    String.raw`\nNonce: (?<nonce>[A-Za-z0-9]{8,128})`,
    String.raw`\nIssued At: (?<issuedAt>${time})`,
    String.raw`(?:\nExpiration Time: (?<expirationTime>${time}))?`,
    String.raw`(?:\nNot Before: (?<notBefore>${time}))?`,
    String.raw`(?:\nRequest ID: (?<requestId>${requestId}))?`,
    String.raw`(?:\nResources:(?<resources>(?:\n- ${uri})*))?$`,
  ].join(''),
);

/** Reads a message; undefined for everything that is not one to the letter. */
export function parseSiweMessage(text: string): SiweMessage | undefined {
  const found = text.length <= maxChars ? grammar.exec(text)?.groups : undefined;
  if (!found) return undefined;
  const { address = '', chainId, resources, issuedAt = '', expirationTime, notBefore } = found;
  const listed = resources === undefined ? undefined : resources.split('\n- ').slice(1);
  const times = [issuedAt, expirationTime, notBefore];
  if (!isAddress(address) || getAddress(address) !== address) return undefined;
  if (!Number.isSafeInteger(Number(chainId)) || (listed?.length ?? 0) > maxResources) return undefined;
  if (times.some((at) => at !== undefined && timeMs(at) === undefined)) return undefined;
  return {
    ...(found['scheme'] !== undefined && { scheme: found['scheme'] }),
    domain: found['domain'] ?? '',
    address: address.toLowerCase() as Address,
    ...(found['statement'] !== undefined && { statement: found['statement'] }),
    uri: found['uri'] ?? '',
    chainId: Number(chainId),
    nonce: found['nonce'] ?? '',
    issuedAt,
    ...(expirationTime !== undefined && { expirationTime }),
    ...(notBefore !== undefined && { notBefore }),
    ...(found['requestId'] !== undefined && { requestId: found['requestId'] }),
    ...(listed && { resources: listed }),
  };
}

/**
 * The text of a message, for a wallet to sign.
 * @throws RangeError if a field is not allowed in a message
 */
export function siweMessage(message: SiweMessage): string {
  const text = [
    message.scheme === undefined ? '' : `${message.scheme}://`,
    `${message.domain} wants you to sign in with your Ethereum account:\n${getAddress(message.address)}\n\n`,
    message.statement === undefined ? '' : `${message.statement}\n`,
    `\nURI: ${message.uri}\nVersion: 1\nChain ID: ${message.chainId}\nNonce: ${message.nonce}`,
    `\nIssued At: ${message.issuedAt}`,
    line('Expiration Time', message.expirationTime),
    line('Not Before', message.notBefore),
    line('Request ID', message.requestId),
    message.resources && `\nResources:${message.resources.map((resource) => `\n- ${resource}`).join('')}`,
  ].join('');
  if (!isDeepStrictEqual(parseSiweMessage(text), message))
    throw new RangeError('a field is not allowed in an EIP-4361 message');
  return text;
}

function line(name: string, value: string | undefined): string {
  return value === undefined ? '' : `\n${name}: ${value}`;
}

/** How old a message may be, and how long its nonce is valid. */
export const siweMaxAgeSecs = 300;
/** How far a wallet's clock may be ahead of ours. */
export const siweMaxSkewMs = 60_000;

/** The values that a message must have for this gateway. */
export interface SiweExpectation {
  /** Host, and port if there is one. */
  readonly domain: string;
  /** What its URI and its scheme belong to: `https://gateway.example`. */
  readonly origin: string;
  readonly chainIds: readonly number[];
  readonly nowMs: number;
  readonly maxAgeMs: number;
  /** How far a wallet's clock may be ahead of ours. */
  readonly maxSkewMs: number;
}

export type SiweRefusal =
  | 'wrong_domain'
  | 'wrong_uri'
  | 'wrong_chain'
  | 'too_old'
  | 'from_the_future'
  | 'expired'
  | 'not_yet_valid';

/** Why a message is not valid for this gateway now. Its nonce is checked elsewhere. */
export function siweRefusal(message: SiweMessage, expected: SiweExpectation): SiweRefusal | undefined {
  const { nowMs } = expected;
  const { protocol } = new URL(expected.origin);
  const isOurDomain = message.domain.toLowerCase() === expected.domain.toLowerCase();
  const isOurScheme = message.scheme === undefined || `${message.scheme.toLowerCase()}:` === protocol;
  if (!isOurDomain || !isOurScheme) return 'wrong_domain';
  if (originOf(message.uri) !== expected.origin) return 'wrong_uri';
  if (!expected.chainIds.includes(message.chainId)) return 'wrong_chain';
  const issuedMs = timeMs(message.issuedAt) ?? Number.NaN;
  if (!(issuedMs <= nowMs + expected.maxSkewMs)) return 'from_the_future';
  if (issuedMs < nowMs - expected.maxAgeMs) return 'too_old';
  const { expirationTime, notBefore } = message;
  if (expirationTime !== undefined && !((timeMs(expirationTime) ?? 0) > nowMs)) return 'expired';
  if (notBefore !== undefined && !((timeMs(notBefore) ?? Infinity) <= nowMs)) return 'not_yet_valid';
  return undefined;
}

/** Of a place that a browser opens: `blob:https://…` and `https:…` without slashes have an origin too. */
function originOf(text: string): string | undefined {
  if (!/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return url.username === '' && url.password === '' ? url.origin : undefined;
}

/** Milliseconds of an RFC 3339 time that exists; undefined for a 30th of February, or a 25th hour. */
function timeMs(text: string): number | undefined {
  return rfc3339.safeParse(text).success ? Date.parse(text) : undefined;
}

/** What a wallet signs of a message's text (EIP-191): 32 bytes. */
export function siweDigest(text: string): Uint8Array {
  return personalSignDigest(stringToBytes(text));
}

/** The key that signed a text; undefined if no key could have, as with the signature of a contract. */
export function recoverSiweSigner(text: string, signature: string): Address | undefined {
  const parsed = parseSignature(signature);
  return parsed && recoverSigner(siweDigest(text), parsed);
}
