import { z } from 'zod';
import { originPattern } from '../../base/values/log/checkpoint.ts';
import { changesQuote, type EventFamily, note, recordOnly } from './descriptor.ts';
import {
  count,
  hex32,
  network,
  ofJob,
  ofPayment,
  ofTransfer,
  operatorName,
  operatorText,
  reason,
  settlementTerms,
  uint256,
} from './fields.ts';

const { transfer_method, symbol, decimals, pay_to, amount } = settlementTerms;

const origin = z.string().regex(originPattern);
const generation = z.int().min(2);
/** Which database it was, as far as PostgreSQL says it. */
const database = z.strictObject({
  system_identifier: z
    .string()
    .regex(/^\d{1,20}$/)
    .optional(),
  oid: count,
  timeline: count.optional(),
});
const ofRecovery = { of: 'entity', kind: 'recovery' } as const;

/** What an operator records after the ledger lost events, in a stream for each generation of the log. */
export const recoveryEvents = {
  /** The log continues under another name. The events before it are kept and stay provable. */
  ledger_recovered: {
    ...recordOnly,
    schema: z.strictObject({
      generation,
      /** The log's names; absent if nothing is sealed. */
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
      /** `went_live`: nothing is known to be lost, and a copy of the ledger became the ledger. */
      reason,
      operator: operatorName,
      why: operatorText.optional(),
      /** The database that continues the ledger: gateways start live there. */
      database: database.optional(),
    }),
    transition: { ...ofRecovery, from: ['none'], to: 'recovered' },
  },
  /** PostgreSQL's timeline is another one, as after a failover, and it is proven that no event is missing. */
  database_continued: {
    ...recordOnly,
    schema: z.strictObject({
      database,
      /** A gateway that had appended before continued; or the database has all that an anchor knows. */
      proven_by: z.enum(['running_gateway', 'anchor']),
      /** The largest anchored checkpoint that the database has. */
      anchored_size: count.optional(),
    }),
    transition: note,
  },
  /** Every payment of the lost events on this network is on record. */
  network_searched: {
    ...recordOnly,
    schema: z.strictObject({ generation, network, from_block: uint256, to_block: uint256, found: count }),
    transition: { ...ofRecovery, from: ['recovered'] },
  },
  /**
   * A payment that the chain shows and no event explains, in a stream named by its fingerprint's hash. Either its call and its quote
   * are lost, and a recovery has found it in a final block; or a gateway has refused it, and it has landed all the same. A refund is due
   * until its payer asks for delivery.
   */
  payment_recovered: {
    ...changesQuote,
    schema: z.strictObject({
      ...ofPayment,
      transfer_method,
      symbol,
      decimals,
      pay_to,
      amount,
      ...ofTransfer,
      /** Of the log, which the recovery has begun. */
      generation: generation.optional(),
      refused: z
        .strictObject({
          /** What its client was told. */
          code: reason,
          /** The quote of this ledger that it names. */
          quote_digest: hex32.optional(),
          /** Until when it can land again if a reorg removes its transfer, in Unix seconds. */
          valid_before: uint256,
        })
        .optional(),
    }),
    transition: { of: 'recovered_payment' },
    uniqueness: 'claims',
    bookkeeping: 'posts',
    followUps: ['confirm'],
  },
  /** The payer of a recovered payment has signed anew for one request: its call is enqueued instead of the refund. */
  redelivery_requested: {
    ...changesQuote,
    schema: z.strictObject({
      ...ofPayment,
      ...ofJob,
      request_id: z.uuid(),
      binding: hex32,
      body_sha256: hex32,
      /** Of the body, if the lost quote is known to be only for one body: it equals the quote's `inputs_hash`. */
      body_keccak256: hex32.optional(),
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
    bookkeeping: 'posts',
  },
} as const satisfies EventFamily;
