import { z } from 'zod';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { address, hex32, network, reason, uint256 } from './fields.ts';

const spend = {
  chat_id: z.uuid(),
  network,
  contract: address,
  commitment: hex32,
  nonce: uint256,
  auth_hash: hex32,
  operator: address,
  /** In the token's atoms. */
  amount: uint256,
};
/** Absent if another party landed the spend: then it has no transaction of ours. */
const onChain = {
  transaction: hex32.optional(),
  block_number: uint256.optional(),
  block_hash: hex32.optional(),
};

const ofSpend = { of: 'entity', kind: 'spend' } as const;

/** Spends of prepaid credits on a chain. */
export const spendEvents = {
  /** Accepted for one request. Holds everything that landing it takes. */
  spend_accepted: {
    ...recordOnly,
    schema: z.strictObject({
      ...spend,
      service_id: uint256,
      job_index: z.int().min(0).max(255),
      expiry: uint256,
      signature: z.string().regex(/^0x[0-9a-f]{130}$/),
      /** Hash of the request that it pays for: its own digest, method, path, body and the client's secret, if it sent one. */
      binding: hex32,
      process_id: z.uuid(),
    }),
    transition: { ...ofSpend, from: ['none'], to: 'accepted' },
    uniqueness: 'claims',
  },
  /** The contract has debited its account. Within an exposure the answer starts first, so it may follow `spend_earned`. */
  spend_authorized: {
    ...recordOnly,
    schema: z.strictObject({ ...spend, ...onChain }),
    transition: { ...ofSpend, from: ['accepted', 'earned'] },
  },
  /** An answer has started: from here on the amount is the operator's. */
  spend_earned: {
    ...recordOnly,
    schema: z.strictObject(spend),
    transition: { ...ofSpend, from: ['accepted'], to: 'earned' },
    bookkeeping: 'posts',
    followUps: ['pay_out'],
  },
  /**
   * Nothing was delivered for it, and it will not be paid out. Its nonce is free again; the spend itself is free for another
   * request only if it was not given to its chain, since a transaction shows it to everyone.
   */
  spend_released: {
    ...recordOnly,
    schema: z.strictObject({
      ...spend,
      reason,
      /** The spend may be public: it pays for no request but its first one, for ever. */
      may_have_landed: z.literal(true).optional(),
    }),
    transition: { ...ofSpend, from: ['accepted'], to: 'released' },
    uniqueness: 'releases',
  },
  /** Its operator has the tokens. */
  spend_paid_out: {
    ...recordOnly,
    schema: z.strictObject({ ...spend, ...onChain }),
    transition: { ...ofSpend, from: ['earned'], to: 'closed' },
    bookkeeping: 'posts',
    reconciliation: 'needed',
  },
  /** It was earned and will never be paid out. */
  spend_failed: {
    ...recordOnly,
    schema: z.strictObject({ ...spend, reason }),
    transition: { ...ofSpend, from: ['earned'], to: 'closed' },
    bookkeeping: 'posts',
  },
} as const satisfies EventFamily;
