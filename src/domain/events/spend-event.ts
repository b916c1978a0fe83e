import { z } from 'zod';

/** What can stand in the ledger about spends of prepaid credits on a chain. Amounts are the token's atoms. */
const hex32 = z.string().regex(/^0x[0-9a-f]{64}$/);
const address = z.string().regex(/^0x[0-9a-f]{40}$/);
const number = z.string().regex(/^(?:0|[1-9]\d{0,77})$/);
const network = z.string().regex(/^eip155:[1-9]\d{0,15}$/);
const reason = z.string().regex(/^[a-z0-9_]{1,100}$/);

const ofSpend = {
  chat_id: z.uuid(),
  network,
  contract: address,
  commitment: hex32,
  nonce: number,
  auth_hash: hex32,
  operator: address,
  amount: number,
};
/** Where it landed; a spend that somebody else landed has no transaction of ours. */
const onChain = {
  transaction: hex32.optional(),
  block_number: number.optional(),
  block_hash: hex32.optional(),
};

export const spendEventSchemas = {
  /** Taken for one request: all that it takes to land it is here. */
  spend_accepted: z.strictObject({
    ...ofSpend,
    service_id: number,
    job_index: z.int().min(0).max(255),
    expiry: number,
    signature: z.string().regex(/^0x[0-9a-f]{130}$/),
    /** Hash of what it pays for: its own digest, method, path and body. */
    binding: hex32,
    process_id: z.uuid(),
  }),
  /** The contract has debited its account. */
  spend_authorized: z.strictObject({ ...ofSpend, ...onChain }),
  /** An answer has begun: from here on it is the operator's. */
  spend_earned: z.strictObject(ofSpend),
  /** Nothing was delivered for it, and nothing will be claimed. */
  spend_released: z.strictObject({ ...ofSpend, reason }),
  /** Its operator has the tokens. */
  spend_paid_out: z.strictObject({ ...ofSpend, ...onChain }),
  /** It was earned and will never be paid. */
  spend_failed: z.strictObject({ ...ofSpend, reason }),
} as const;
