import type { ProvenEvents } from '../use-cases/log/log-reader.ts';
import { type InclusionProof, proofText } from '../use-cases/log/prove.ts';
import type { StoredHead } from '../store/log.ts';
import type { LogProofs } from './schemas/log.ts';

/** Proofs as JSON, with the head that they lead to. */
export function proofsJson(
  { head, proofs }: ProvenEvents,
  pending: number,
  leaves?: ReadonlyMap<number, Buffer>,
): LogProofs {
  return {
    tree_size: head.size,
    root_hash: base64(head.root),
    checkpoint: head.note,
    proofs: proofs.map((proof) => proofJson(proof, head, leaves?.get(proof.seq))),
    pending,
  };
}

/** One proof as JSON. */
export function proofJson(
  proof: InclusionProof,
  head: StoredHead,
  leaf?: Buffer,
): LogProofs['proofs'][number] {
  return {
    seq: proof.seq,
    leaf_hash: base64(proof.leafHash),
    hashes: proof.hashes.map(base64),
    tlog_proof: proofText(proof, head),
    ...(leaf && { leaf_base64: base64(leaf) }),
  };
}

export function base64(bytes: Buffer): string {
  return bytes.toString('base64');
}
