import { z } from 'zod';
import { originPattern } from '../log/checkpoint.ts';
import { type EventFamily, recordOnly } from './descriptor.ts';
import {
  count,
  hex32,
  network,
  ofJob,
  ofPayment,
  ofTransfer,
  operatorName,
  reason,
  settlementTerms,
  uint256,
} from './fields.ts';

const { transfer_method, symbol, decimals, pay_to, amount } = settlementTerms;

const origin = z.string().regex(originPattern);
const generation = z.int().min(2);
const ofRecovery = { of: 'entity', kind: 'recovery' } as const;

/** What an operator records after the ledger lost events, in a stream for each generation of the log. */
export const recoveryEvents = {
  /** The log goes on under another name. The events before it are kept and stay provable. */
  ledger_recovered: {
    ...recordOnly,
    schema: z.strictObject({
      generation,
      /** The log's names; absent where nothing is sealed. */
      origin: origin.optional(),
      new_origin: origin.optional(),
      /** The largest checkpoint of the lost history that an anchor holds. */
      anchored_size: count.optional(),
      anchored_root: hex32.optional(),
      /** The last event of the database that was recovered. */
      kept_seq: count,
      /** The events that are known to be lost; their numbers are given out again. */
      lost_from: count.optional(),
      lost_to: count.optional(),
      /** Unix seconds: payments that landed on a chain since then are searched. */
      since: count,
      reason,
      operator: operatorName,
    }),
    transition: { ...ofRecovery, from: ['none'], to: 'recovered' },
  },
  /** Every payment of the lost events on this network is on record. */
  network_searched: {
    ...recordOnly,
    schema: z.strictObject({ generation, network, from_block: uint256, to_block: uint256, found: count }),
    transition: { ...ofRecovery, from: ['recovered'] },
  },
  /**
   * A payment that the chain shows and no event explains, in a stream named by its fingerprint's hash: its call and its quote
   * are lost. A refund is due until its payer asks for delivery. Recorded once its block is final.
   */
  payment_recovered: {
    schema: z.strictObject({
      ...ofPayment,
      transfer_method,
      symbol,
      decimals,
      pay_to,
      amount,
      ...ofTransfer,
      generation,
    }),
    transition: { of: 'recovered_payment' },
    quoteState: 'changes',
    uniqueness: 'claims',
    credit: 'none',
    bookkeeping: 'posts',
    reopens: 'none',
    reconciliation: 'needed',
    readModels: ['payments'],
    counters: 'none',
    followUps: 'none',
  },
  /** The payer of a recovered payment has signed anew for one request: its call is enqueued instead of the refund. */
  redelivery_requested: {
    schema: z.strictObject({
      ...ofPayment,
      ...ofJob,
      request_id: z.uuid(),
      binding: hex32,
      body_sha256: hex32,
      body_bytes: count,
      x402_version: z.union([z.literal(1), z.literal(2)]),
      /** The lost quote, as the payer named it. */
      quote_digest: hex32.optional(),
      /** The payer's, over the request. */
      signature: z
        .string()
        .regex(/^0x(?:[0-9a-f]{2})*$/)
        .max(8194),
    }),
    transition: { of: 'redelivery' },
    quoteState: 'changes',
    uniqueness: 'none',
    credit: 'none',
    bookkeeping: 'posts',
    reopens: 'none',
    reconciliation: 'needed',
    readModels: ['payments'],
    counters: 'none',
    followUps: 'none',
  },
} as const satisfies EventFamily;
