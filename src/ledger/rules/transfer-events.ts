import { z } from 'zod';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { address, count, hex32, ofTransfer, operatorName, operatorText, settlementTerms } from './fields.ts';

const { network, asset, symbol, decimals, amount, pay_to } = settlementTerms;

/** How an operator explains money that came to a payee without a payment. */
const transferUses = ['suspense', 'income', 'returned', 'own'] as const;

const aboutTransfers = { ...recordOnly, bookkeeping: 'posts', reconciliation: 'needed' } as const;

/** Unexplained transfers to a payee, each in a stream that is named by its place on the chain. */
export const transferEvents = {
  /**
   * `suspense`: its owner is not known yet. `income`: it is kept. `returned`: it was in suspense, and another transfer gave it
   * back. `own`: the operator's money, from a payee to itself or from another account of the operator.
   */
  operator_transfer_recorded: {
    ...aboutTransfers,
    schema: z.strictObject({
      as: z.enum(transferUses),
      network,
      asset,
      symbol,
      decimals,
      pay_to,
      received_from: address,
      amount,
      ...ofTransfer,
      /** Of `returned` alone: the transfer that gave it back, of the same amount and token to the sender. */
      returned: z.strictObject({ from: address, ...ofTransfer }).optional(),
      operator: operatorName,
    }),
    transition: { of: 'entity', kind: 'transfer', from: ['none', 'recorded', 'reversed'], to: 'recorded' },
    uniqueness: 'claims',
  },
  /** All that was recorded of the transfer was wrong: its transfers are free for other records. */
  operator_transfer_reversed: {
    ...aboutTransfers,
    schema: z.strictObject({
      network,
      transaction: hex32,
      log_index: count,
      why: operatorText,
      operator: operatorName,
    }),
    transition: { of: 'entity', kind: 'transfer', from: ['recorded'], to: 'reversed' },
    uniqueness: 'releases',
  },
} as const satisfies EventFamily;
