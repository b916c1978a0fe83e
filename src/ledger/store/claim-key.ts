import { hash } from 'node:crypto';
import type { AnyClaim, Claim, NonceClaim } from './lane-command.ts';

/** A claim as the append functions and the row of a call have it. */
export type EncodedClaim = EncodedHash | EncodedNonce;

/** A row of `tollbook.claim`, in hex. Its kind is not stored: the key contains it. */
export interface EncodedHash {
  readonly kind: Claim['kind'];
  readonly key: string;
  readonly binding: string;
}

/** A row of `tollbook.caller_nonce`; `key` only tells whether two commands of a batch claim the same one. */
export interface EncodedNonce {
  readonly kind: NonceClaim['kind'];
  readonly key: string;
  readonly caller: string;
  readonly service_id: number;
  readonly job_index: number;
  readonly nonce_sha256: string;
}

/**
 * 128 bits of SHA-256. Two values never meet by chance; a value that meets one that another party chose takes 2^128 attempts.
 * A payer who chooses both can find a pair in 2^64, of its own two payments, and only has the second one refused as a replay.
 */
const nameBytes = 16;
/** Among the few parts of one name. */
const partBytes = 8;

export function encodeClaim(claim: AnyClaim): EncodedClaim {
  return claim.kind === 'caller_nonce' ? encodeNonce(claim) : encodeHash(claim);
}

export function encodeHash(claim: Claim): EncodedHash {
  return { kind: claim.kind, key: keyHex(claim), binding: digest(claim.binding, nameBytes) };
}

export function encodeNonce({ kind, caller, serviceId, jobIndex, nonceSha256 }: NonceClaim): EncodedNonce {
  const key = digest(JSON.stringify([kind, caller, serviceId, jobIndex, nonceSha256]), nameBytes);
  return { kind, key, caller, service_id: serviceId, job_index: jobIndex, nonce_sha256: nonceSha256 };
}

/** What is unique: the hash of the claim's name, then that of its part, so that one range holds all parts of a name. */
export function claimKey(claim: Omit<Claim, 'binding'>): Buffer {
  return Buffer.from(keyHex(claim), 'hex');
}

/** The range of the keys of a claim's name, whatever their part. */
export function claimKeys({
  kind,
  owner,
  scope,
  key,
}: Omit<Claim, 'binding'>): [lowest: Buffer, highest: Buffer] {
  const name = claimKey({ kind, owner, scope, key });
  return [name, Buffer.concat([name, Buffer.alloc(partBytes, 0xff)])];
}

function keyHex({ kind, owner, scope, key, part }: Omit<Claim, 'binding'>): string {
  const name = digest(JSON.stringify([kind, owner, scope, key]), nameBytes);
  return part === undefined ? name : name + digest(part, partBytes);
}

/** The first bytes of a hash in hex: a buffer of them would only be written as hex again. */
function digest(text: string, bytes: number): string {
  return hash('sha256', text, 'hex').slice(0, 2 * bytes);
}
