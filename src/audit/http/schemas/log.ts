import { z } from 'zod';
import { count, quoteDigest } from '../../../base/http/values.ts';

const treeHash = z.base64().meta({
  description: 'A SHA-256 hash in base64.',
  examples: ['47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='],
});
const hashes = z.array(treeHash).max(64).describe('In the order of RFC 6962.');
const checkpoint = z.string().describe('The signed note of the tree head that the proof leads to.');
const place = z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER);

export const proofQuery = z.strictObject({
  seq: place.optional().describe("The event's place in the ledger."),
  quote_digest: quoteDigest.optional().describe('All events of a quote.'),
  size: place.optional().describe('The size of the tree head, with `seq` only. Default: the newest.'),
});

export const consistencyQuery = z.strictObject({
  from: place.describe('The size of the smaller tree.'),
  to: place.describe('The size of a later tree head.'),
});

export const inclusionProof = z.strictObject({
  seq: count.describe("The event's place in the ledger; its index in the tree is one less."),
  leaf_hash: treeHash,
  hashes,
  tlog_proof: z.string().describe('The same proof as a C2SP tlog-proof.'),
  leaf_base64: z
    .base64()
    .optional()
    .describe("The event's bytes: only with the receipt token of its quote, or `audit:read`."),
});

export const logProofs = z
  .strictObject({
    tree_size: count,
    root_hash: treeHash,
    checkpoint,
    proofs: z.array(inclusionProof),
    pending: count.describe('Events that no tree head includes yet.'),
  })
  .describe('Inclusion proofs.');
export type LogProofs = z.infer<typeof logProofs>;

export const logConsistency = z
  .strictObject({ from: count, to: count, hashes, checkpoint })
  .describe('A consistency proof: the smaller tree is a prefix of the larger one.');
export type LogConsistency = z.infer<typeof logConsistency>;
