import { createHash } from 'node:crypto';
import { hexToBytes } from 'viem/utils';
import type { Address } from '../domain/values/primitives.ts';
import type { PriceRequest } from './price-request.ts';

/** What a client spent before it asked. Numbers of 64 bits; the time is in Unix seconds. */
export interface ProofOfWork {
  readonly timestamp: bigint;
  readonly nonce: bigint;
}

export type ProofCheck =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused' | 'full'; readonly reason: string };

/** Accepts each proof once. */
export interface ProofOfWorkChecker {
  readonly bits: number;
  /** Costs one hash; a proof whose time is wrong costs none. */
  check(request: PriceRequest, proof: ProofOfWork | undefined, nowSecs: number): ProofCheck;
}

/** The most zero bits: above them a client needs minutes. */
export const maxProofBits = 32;
/** How far the time of a proof may be from the server's clock. */
export const proofWindowSecs = 120;
/** How many proofs are remembered until they are stale: about 30 MB. */
const mostRemembered = 200_000;

const label = Buffer.from('tollbook pricing proof of work\0', 'ascii');

/** The bytes that are hashed; pricing.proto describes them for clients. */
function proofBytes(operator: Address, request: PriceRequest, proof: ProofOfWork): Uint8Array {
  const job = Buffer.alloc(16);
  job.writeBigUInt64BE(BigInt(request.serviceId), 0);
  job.writeBigUInt64BE(BigInt(request.jobIndex), 8);
  const work = Buffer.alloc(16);
  work.writeBigUInt64BE(proof.timestamp, 0);
  work.writeBigUInt64BE(proof.nonce, 8);
  const bound = [operator, request.requester, request.inputsHash].map((hex) => hexToBytes(hex));
  const [operatorBytes, ...rest] = bound;
  return Buffer.concat([label, operatorBytes ?? label, job, ...rest, work]);
}

/** @param most how many accepted proofs are remembered at once */
export function createProofOfWorkChecker(
  operator: Address,
  bits: number,
  most = mostRemembered,
): ProofOfWorkChecker {
  // the older of two sets is dropped when every proof in it is stale: a proof is in force for at most two windows
  const lifeSecs = 2 * proofWindowSecs;
  let [recent, older] = [new Set<string>(), new Set<string>()];
  let turnsAtSecs = 0;

  const forget = (nowSecs: number): void => {
    if (nowSecs < turnsAtSecs) return;
    // after a long pause both are stale
    older = nowSecs < turnsAtSecs + lifeSecs ? recent : new Set();
    recent = new Set();
    turnsAtSecs = nowSecs + lifeSecs;
  };

  return {
    bits,
    check(request, proof, nowSecs) {
      if (!proof) return refused(`a proof of work of ${bits} bits is required`);
      const ageSecs = BigInt(nowSecs) - proof.timestamp;
      if (ageSecs > proofWindowSecs) return refused(`the proof of work is older than ${proofWindowSecs} s`);
      if (ageSecs < -proofWindowSecs)
        return refused(`the time of the proof of work is more than ${proofWindowSecs} s in the future`);
      const hash = createHash('sha256')
        .update(proofBytes(operator, request, proof))
        .digest();
      if (!hasZeroBits(hash, bits))
        return refused(`the hash of the proof of work does not begin with ${bits} zero bits`);
      forget(nowSecs);
      const name = hash.toString('latin1');
      if (recent.has(name) || older.has(name)) return refused('the proof of work was used before');
      if (recent.size + older.size >= most)
        return { kind: 'full', reason: 'too many proofs of work are in force: ask again in some minutes' };
      recent.add(name);
      return { kind: 'accepted' };
    },
  };
}

function refused(reason: string): ProofCheck {
  return { kind: 'refused', reason };
}

function hasZeroBits(hash: Uint8Array, bits: number): boolean {
  const whole = bits >> 3;
  if (hash.subarray(0, whole).some((byte) => byte !== 0)) return false;
  return (hash[whole] ?? 0) >> (8 - (bits & 7)) === 0;
}
