import { bytesToHex, isAddress, stringToBytes } from 'viem/utils';
import type { JobId } from '../../base/values/job.ts';
import { keccak256 } from '../../base/values/keccak.ts';
import type { Address, Hex } from '../../base/values/primitives.ts';
import { type EthereumSignature, parseSignature } from '../../base/values/ethereum-signature.ts';
import type { RefusalCode } from '../../base/errors/refusal.ts';

/** The four headers of a delegated caller, as received. */
export interface CallerHeaders {
  readonly caller: string | undefined;
  readonly signature: string | undefined;
  readonly nonce: string | undefined;
  readonly expiry: string | undefined;
}

/** A delegated caller's credentials: well formed, not yet verified. */
export interface CallerClaim {
  readonly caller: Address;
  readonly signature: Hex;
  readonly parsed: EthereumSignature;
  readonly nonce: string;
  /** Unix seconds. */
  readonly expiry: number;
}

/** What can be wrong with the headers of a delegated caller. */
export type CallerClaimRefusal = Extract<
  RefusalCode,
  `${'missing' | 'invalid'}_${'caller' | `signature${string}`}` | 'signature_expired'
>;

/** 1 to 128 visible ASCII characters without a colon, which is the separator in the signed text. */
const nonceForm = /^[!-9;-~]{1,128}$/;
const expiryForm = /^(?:0|[1-9]\d{0,15})$/;

/** An address in lower or upper case, or with a valid EIP-55 checksum; undefined for anything else. */
export function parseCaller(text: string): Address | undefined {
  const digits = text.slice(2);
  const isPlain = digits === digits.toLowerCase() || digits === digits.toUpperCase();
  return text.startsWith('0x') && isAddress(text, { strict: !isPlain })
    ? (text.toLowerCase() as Address)
    : undefined;
}

export function parseNonce(text: string): string | undefined {
  return nonceForm.test(text) ? text : undefined;
}

/**
 * Reads the headers of a delegated caller. Returns the code of the first missing or malformed header, in their order;
 * `signature_expired` if all are well formed and the expiry has passed.
 */
export function readCallerClaim(
  headers: CallerHeaders,
  nowSecs: number,
  maxTtlSecs: number,
): CallerClaim | CallerClaimRefusal {
  if (headers.caller === undefined) return 'missing_caller';
  const caller = parseCaller(headers.caller);
  if (!caller) return 'invalid_caller';
  if (headers.signature === undefined) return 'missing_signature';
  const parsed = parseSignature(headers.signature);
  if (!parsed) return 'invalid_signature';
  if (headers.nonce === undefined) return 'missing_signature_nonce';
  const nonce = parseNonce(headers.nonce);
  if (nonce === undefined) return 'invalid_signature_nonce';
  if (headers.expiry === undefined) return 'missing_signature_expiry';
  const expiry = expiryForm.test(headers.expiry) ? Number(headers.expiry) : undefined;
  if (expiry === undefined || expiry > nowSecs + maxTtlSecs) return 'invalid_signature_expiry';
  if (expiry <= nowSecs) return 'signature_expired';
  return { caller, signature: headers.signature.toLowerCase() as Hex, parsed, nonce, expiry };
}

/** The text that a caller signs (EIP-191 `personal_sign`): valid for one body, job and nonce, until its expiry. */
export function callerMessage(
  job: JobId,
  body: Uint8Array,
  { nonce, expiry }: Pick<CallerClaim, 'nonce' | 'expiry'>,
): string {
  return callerText(job, bytesToHex(keccak256(body)).slice(2), nonce, String(expiry));
}

/** Its form, also for programs and guides that write it: `bodyHash` in hex without 0x. */
export function callerText(job: JobId, bodyHash: string, nonce: string, expiry: string): string {
  return `x402-authorize:${job.serviceId}:${job.jobIndex}:${bodyHash}:${nonce}:${expiry}`;
}

/** The EIP-191 digest of that text. */
export function callerDigest(
  job: JobId,
  body: Uint8Array,
  claim: Pick<CallerClaim, 'nonce' | 'expiry'>,
): Uint8Array {
  return personalSignDigest(stringToBytes(callerMessage(job, body, claim)));
}

/** The digest that a wallet signs for a text's bytes (EIP-191 `personal_sign`). */
export function personalSignDigest(message: Uint8Array): Uint8Array {
  return keccak256(
    Buffer.concat([stringToBytes(`\x19Ethereum Signed Message:\n${message.length}`), message]),
  );
}
