import { z } from 'zod';
import { decodeLeaf, isUnreadable, type RecordedEvent } from '../../../ledger/rules/event.ts';
import {
  CheckpointError,
  type NoteVerifier,
  openCheckpoint,
  type TreeHead,
} from '../../../base/values/log/checkpoint.ts';
import { isIncluded, leafHash } from '../../../base/values/log/merkle.ts';

const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'));

/** The checked fields of a gateway's receipt. Later versions may have more. */
const receiptShape = z.object({
  quote_digest: z.string(),
  log_proof: z
    .object({
      checkpoint: z.string(),
      pending: z.number(),
      proofs: z.array(
        z.object({
          seq: z.int().min(1),
          leaf_hash: bytes,
          hashes: z.array(bytes).max(64),
          leaf_base64: bytes.optional(),
        }),
      ),
    })
    .nullable(),
});

type Proof = NonNullable<z.infer<typeof receiptShape>['log_proof']>['proofs'][number];

export type ReceiptVerdict =
  | {
      readonly kind: 'proven';
      readonly head: TreeHead;
      /** The type if the receipt holds the event itself, for the payer. */
      readonly events: readonly { readonly seq: number; readonly type: string | undefined }[];
      /** Events of the settlement that the head does not cover yet. */
      readonly pending: number;
    }
  | { readonly kind: 'not_proven'; readonly reason: string };

/** Checks with the public key of the log alone that the events of a receipt are in the log. */
export function verifyReceipt(receipt: unknown, verifier: NoteVerifier): ReceiptVerdict {
  const parsed = receiptShape.safeParse(receipt);
  if (!parsed.success) return notProven('this is not the JSON of a receipt of a sealed ledger');
  const { quote_digest: digest, log_proof: proof } = parsed.data;
  if (!proof || proof.proofs.length === 0) return notProven('the receipt has no proof yet: ask for it again');
  let head: TreeHead;
  try {
    head = openCheckpoint(proof.checkpoint, verifier);
  } catch (error) {
    if (error instanceof CheckpointError) return notProven(error.message);
    throw error;
  }
  for (const one of proof.proofs) {
    const fault = faultOf(one, head, digest);
    if (fault !== undefined) return notProven(`event ${one.seq}: ${fault}`);
  }
  const events = proof.proofs.map(({ seq, leaf_base64: leaf }) => ({
    seq,
    type: leaf && readLeaf(leaf)?.type,
  }));
  return { kind: 'proven', head, events, pending: proof.pending };
}

function faultOf({ seq, leaf_hash: hash, hashes, leaf_base64: leaf }: Proof, head: TreeHead, digest: string) {
  if (!isIncluded({ ...head, index: seq - 1 }, hash, hashes))
    return 'its hashes do not lead to the root of the checkpoint';
  if (!leaf) return undefined;
  if (!leafHash(leaf).equals(hash)) return 'the event is another one than the leaf that is proven';
  const event = readLeaf(leaf);
  if (!event) return 'this version of tollbook cannot read the event';
  return event.stream === digest && event.seq === seq ? undefined : 'the event is not of this receipt';
}

function readLeaf(leaf: Buffer): RecordedEvent | undefined {
  try {
    return decodeLeaf(leaf);
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

function notProven(reason: string): ReceiptVerdict {
  return { kind: 'not_proven', reason };
}
