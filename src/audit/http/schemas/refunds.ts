import { z } from 'zod';
import { refundReasons } from '../../../payments/rules/refund.ts';
import { asOf, cursorQuery, next } from '../../../accounts/http/schemas/list-cursor.ts';
import {
  address,
  atoms,
  callId,
  count,
  decimals,
  hex32,
  jobIndex,
  network,
  quoteDigest,
  serviceId,
  symbol,
  time,
} from '../../../base/http/values.ts';

/** Why a payment's money is due back. */
export const refundDue = z
  .enum(refundReasons)
  .describe(
    'Why the payment is to be refunded: its call is a dead letter; it has no call; it has no call because another payment of ' +
      'the same quote has it; it was found on the chain after the ledger had lost it; its payer asked for it, and an operator agreed.',
  );

const unnamed = 'Null for a recovered payment whose payer has not asked for delivery.';
/** The job of a payment that may be a recovered one. */
export const recoveredJob = {
  service_id: serviceId.nullable().describe(unnamed),
  job_index: jobIndex.nullable().describe(unnamed),
};

export const quoteSource = z
  .literal('pricing')
  .nullable()
  .describe('Which service issued the quote; null for a 402 answer, and if the quote is lost.');

const refundUnderWay = z
  .strictObject({
    since: time,
    age_secs: count,
    operator: z.string(),
    sender: address.nullable().describe('Whose transaction it is, if that is known.'),
    sender_nonce: count.nullable(),
    transaction: hex32.nullable().describe('What the wallet answered.'),
  })
  .describe('The refund that an operator began to send, and that is neither recorded nor given up.');

export const refundsDueQuery = z.strictObject(cursorQuery);

export const refundsDue = z
  .strictObject({
    ...asOf,
    refunds_due: z.array(
      z.strictObject({
        seq: count.describe('The event that started the payment.'),
        quote_digest: quoteDigest,
        payment_nonce: hex32.describe('Names the payment if its quote was paid twice.'),
        ...recoveredJob,
        network,
        asset: address,
        symbol,
        decimals,
        amount: atoms.describe('What is left to refund of the payment.'),
        paid_amount: atoms,
        refunded_amount: atoms.describe('What was refunded of it before.'),
        payer: address,
        pay_to: address,
        transaction: hex32.describe('The transaction that paid.'),
        block_number: atoms
          .nullable()
          .describe('The block that proves the payment; null if only the facilitator reported it.'),
        call_id: callId.nullable(),
        quote_source: quoteSource,
        why: refundDue,
        since: time,
        age_secs: count,
        under_way: refundUnderWay.nullable(),
        requested: z
          .strictObject({ at: time, reason: z.string().nullable() })
          .nullable()
          .describe(
            'If its payer asks for it. `reason` is what the payer wrote: treat it as untrusted; null once it is deleted.',
          ),
      }),
    ),
    contradicted: z
      .array(count)
      .describe(
        'The events that started payments of which the read models say something else than their events. The list is what the events ' +
          'say. If this is not empty, pay nothing before `tollbook verify` is sound.',
      ),
    changed: z
      .array(count)
      .describe(
        'Events that are not those that the log has sealed. Their payments are left out of the list. If this is not empty, pay ' +
          'nothing before `tollbook verify` is sound.',
      ),
    next,
  })
  .describe('Payments that are to be refunded, in the order in which they were started.');
export type RefundsDue = z.infer<typeof refundsDue>;
