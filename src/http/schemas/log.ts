import { z } from 'zod';
import { count, quoteDigest } from './values.ts';

const treeHash = z.base64().meta({
  description: 'A SHA-256 hash in base64.',
  examples: ['47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='],
});
const hashes = z.array(treeHash).max(64).meta({ description: 'In the order of RFC 6962.' });
const checkpoint = z.string().meta({ description: 'The signed note of the head that is proven against.' });
const place = z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER);

export const proofQuery = z.strictObject({
  seq: place.optional().meta({ description: "The event's place in the ledger." }),
  quote_digest: quoteDigest.optional().meta({ description: 'All events of a quote.' }),
  size: place.optional().meta({
    description: 'The size of the head that is wanted; with `seq` only. The newest where left out.',
  }),
});

export const consistencyQuery = z.strictObject({
  from: place.meta({ description: 'The size that is known.' }),
  to: place.meta({ description: 'The size of a later head.' }),
});

export const inclusionProof = z.strictObject({
  seq: count.meta({ description: "The event's place in the ledger; its index in the tree is one less." }),
  leaf_hash: treeHash,
  hashes,
  tlog_proof: z.string().meta({ description: 'The same as a C2SP tlog-proof.' }),
  leaf_base64: z
    .base64()
    .optional()
    .meta({ description: "The event's bytes: only with the receipt token of its quote, or `audit:read`." }),
});

export const logProofs = z
  .strictObject({
    tree_size: count,
    root_hash: treeHash,
    checkpoint,
    proofs: z.array(inclusionProof),
    pending: count.meta({ description: 'Events that no head covers yet.' }),
  })
  .meta({ description: 'Proofs that events stand in the log.' });
export type LogProofs = z.infer<typeof logProofs>;

export const logConsistency = z
  .strictObject({ from: count, to: count, hashes, checkpoint })
  .meta({ description: 'That a smaller tree is the beginning of a larger one.' });
export type LogConsistency = z.infer<typeof logConsistency>;
