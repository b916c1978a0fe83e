import { z } from 'zod';
import { costPurposes } from '../../base/values/transaction-cost.ts';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { address, count, hex32, network, operatorName, operatorText, symbol, uint256 } from './fields.ts';

/** Which transaction it was, who paid for it, and how much. */
const ofCost = {
  network,
  transaction: hex32,
  purpose: z.enum(costPurposes),
  /** The account of the operator that sent it, and paid in the chain's own coin. */
  payer: address,
  /** Of that coin, which has 18 decimals. */
  symbol,
  gas_used: uint256,
  gas_price_wei: uint256,
  /** The fee that a rollup of the OP stack charged in addition to the gas. */
  l1_fee_wei: uint256.optional(),
};

/** What the operator paid for transactions, each in a stream that is named by its transaction. */
export const costEvents = {
  /** From the receipt, once its block was final. What it cost is `gas_used` times `gas_price_wei`, and `l1_fee_wei`. */
  transaction_cost_recorded: {
    ...recordOnly,
    schema: z.strictObject({
      ...ofCost,
      block_number: uint256,
      block_hash: hex32,
      /** Unix seconds. */
      block_time: count,
      /** Left out if a gateway recorded it. */
      operator: operatorName.optional(),
    }),
    transition: { of: 'entity', kind: 'cost', from: ['none', 'reversed'], to: 'recorded' },
    bookkeeping: 'posts',
  },
  /** The record was wrong: its cost leaves the books again. It repeats the record, so that no reader has to keep it. */
  operator_cost_reversed: {
    ...recordOnly,
    schema: z.strictObject({ ...ofCost, why: operatorText, operator: operatorName }),
    transition: { of: 'entity', kind: 'cost', from: ['recorded'], to: 'reversed' },
    bookkeeping: 'posts',
  },
} as const satisfies EventFamily;
