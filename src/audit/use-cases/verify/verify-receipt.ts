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

/** What the event of a settlement says of the payment. */
const paymentShape = z.object({
  network: z.string(),
  asset: z.string(),
  payer: z.string(),
  amount: z.string(),
  transaction: z.string(),
});
type ProvenPayment = z.infer<typeof paymentShape>;

const proofShape = z.object({
  seq: z.int().min(1),
  leaf_hash: bytes,
  hashes: z.array(bytes).max(64),
  leaf_base64: bytes.optional(),
});
type Proof = z.infer<typeof proofShape>;

/** The checked fields of a gateway's receipt. Later versions may have more. */
const receiptShape = z.object({
  quote_digest: z.string(),
  payment: paymentShape.optional(),
  log_proof: z
    .object({ checkpoint: z.string(), pending: z.number(), proofs: z.array(proofShape) })
    .nullable(),
});

/** Those of `GET /audit/payments/{quote_digest}`, which has every event of the quote. */
const historyShape = z
  .object({
    quote_digest: z.string(),
    checkpoint: z.string().nullable(),
    events: z.array(z.object({ leaf_base64: bytes, proof: proofShape.nullable() })),
  })
  .transform(({ quote_digest, checkpoint, events }): z.infer<typeof receiptShape> => {
    const proofs = events.flatMap(({ proof, leaf_base64 }) => (proof ? [{ ...proof, leaf_base64 }] : []));
    const pending = events.length - proofs.length;
    return { quote_digest, log_proof: checkpoint === null ? null : { checkpoint, pending, proofs } };
  });

export type ReceiptVerdict =
  | {
      readonly kind: 'proven';
      readonly head: TreeHead;
      readonly events: readonly Pick<RecordedEvent, 'seq' | 'type'>[];
      /** By the last event that settled it. */
      readonly payment: ProvenPayment;
      /** Events of the settlement that the head does not cover yet. */
      readonly pending: number;
    }
  | { readonly kind: 'not_proven'; readonly reason: string };

/**
 * Checks with the public key of the log alone that the events of a receipt are in the log, and that the receipt says of the payment
 * what they say. A receipt without its events proves nothing about a payment: it has only hashes.
 */
export function verifyReceipt(receipt: unknown, verifier: NoteVerifier): ReceiptVerdict {
  const parsed = z.union([receiptShape, historyShape]).safeParse(receipt);
  if (!parsed.success)
    return notProven(
      'this is the JSON neither of a receipt of a sealed ledger nor of /audit/payments/{quote_digest}',
    );
  const { quote_digest: digest, log_proof: proof, payment } = parsed.data;
  if (!proof || proof.proofs.length === 0) return notProven('the receipt has no proof yet: ask for it again');
  let head: TreeHead;
  try {
    head = openCheckpoint(proof.checkpoint, verifier);
  } catch (error) {
    if (error instanceof CheckpointError) return notProven(error.message);
    throw error;
  }
  const events: RecordedEvent[] = [];
  for (const one of proof.proofs) {
    const proven = provenEvent(one, head, digest);
    if (typeof proven === 'string') return notProven(`event ${one.seq}: ${proven}`);
    events.push(proven);
  }
  const inOrder = events.toSorted((a, b) => a.seq - b.seq);
  const at = inOrder.findLastIndex(({ type }) => type === 'payment_settled' || type === 'payment_recovered');
  const settled = inOrder[at];
  if (!settled) return notProven('none of its events says that the payment was settled');
  const later = inOrder.slice(at + 1);
  const undone = later.find(({ type }) => type === 'settlement_disproved' || type === 'settlement_reorged');
  if (undone)
    return notProven(`event ${undone.seq} (${undone.type}) says that the payment did not land after all`);
  // the transaction that the chain shows may be another one than a facilitator reported
  const confirmed = later.findLast(({ type }) => type === 'settlement_confirmed');
  const proven = paymentShape.parse({ ...settled.data, ...(confirmed && transactionOf(confirmed)) });
  const wrong = payment && paymentFields.find((field) => payment[field] !== proven[field]);
  if (wrong !== undefined)
    return notProven(`event ${settled.seq}: its ${wrong} is ${proven[wrong]}, and not what the receipt says`);
  return { kind: 'proven', head, events, payment: proven, pending: proof.pending };
}

function transactionOf({ data }: RecordedEvent): Pick<ProvenPayment, 'transaction'> {
  return paymentShape.pick({ transaction: true }).parse(data);
}

const paymentFields = Object.keys(paymentShape.shape) as (keyof ProvenPayment)[];

/** The event that is proven; a text that says why it is not. */
function provenEvent(
  { seq, leaf_hash: hash, hashes, leaf_base64: leaf }: Proof,
  head: TreeHead,
  digest: string,
): RecordedEvent | string {
  if (!isIncluded({ ...head, index: seq - 1 }, hash, hashes))
    return 'its hashes do not lead to the root of the checkpoint';
  if (!leaf)
    return 'the receipt has only its hash, which says nothing about the payment: fetch the receipt with its token, or as an operator';
  if (!leafHash(leaf).equals(hash)) return 'the event is another one than the leaf that is proven';
  const event = readLeaf(leaf);
  if (!event) return 'this version of tollbook cannot read the event';
  return event.stream === digest && event.seq === seq ? event : 'the event is not of this receipt';
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
