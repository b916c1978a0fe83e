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
export const refundDue = z.enum(refundReasons).meta({
  description:
    'Why the payment is to be refunded: its call is a dead letter; it has no call; it has no call because another payment of ' +
    'the same quote has it; it was found on the chain after the ledger had lost it.',
});

const unnamed = 'Null for a recovered payment whose payer has not asked for delivery.';
/** The job of a payment that may be a recovered one. */
export const recoveredJob = {
  service_id: serviceId.nullable().meta({ description: unnamed }),
  job_index: jobIndex.nullable().meta({ description: unnamed }),
};

export const quoteSource = z.literal('pricing').nullable().meta({
  description: 'Which service issued the quote; null for a 402 answer, and if the quote is lost.',
});

const refundUnderWay = z
  .strictObject({
    since: time,
    age_secs: count,
    operator: z.string(),
    sender: address.nullable().meta({ description: 'Whose transaction it is, if that is known.' }),
    sender_nonce: count.nullable(),
    transaction: hex32.nullable().meta({ description: 'What the wallet answered.' }),
  })
  .meta({
    description: 'The refund that an operator began to send, and that is neither recorded nor given up.',
  });

export const refundsDueQuery = z.strictObject(cursorQuery);

export const refundsDue = z
  .strictObject({
    ...asOf,
    refunds_due: z.array(
      z.strictObject({
        seq: count.meta({ description: 'The event that started the payment.' }),
        quote_digest: quoteDigest,
        payment_nonce: hex32.meta({ description: 'Names the payment if its quote was paid twice.' }),
        ...recoveredJob,
        network,
        asset: address,
        symbol,
        decimals,
        amount: atoms.meta({ description: 'What is left to refund of the payment.' }),
        paid_amount: atoms,
        refunded_amount: atoms.meta({ description: 'What was refunded of it before.' }),
        payer: address,
        pay_to: address,
        transaction: hex32.meta({ description: 'The transaction that paid.' }),
        block_number: atoms.nullable().meta({
          description: 'The block that proves the payment; null if only the facilitator reported it.',
        }),
        call_id: callId.nullable(),
        quote_source: quoteSource,
        why: refundDue,
        since: time,
        age_secs: count,
        under_way: refundUnderWay.nullable(),
      }),
    ),
    contradicted: z.array(count).meta({
      description:
        'The events that started payments of which the read models say something else than their events. The list is what the events ' +
        'say. If this is not empty, pay nothing before `tollbook verify` is sound.',
    }),
    changed: z.array(count).meta({
      description:
        'Events that are not those that the log has sealed. Their payments are left out of the list. If this is not empty, pay ' +
        'nothing before `tollbook verify` is sound.',
    }),
    next,
  })
  .meta({ description: 'Payments that are to be refunded, in the order in which they were started.' });
export type RefundsDue = z.infer<typeof refundsDue>;
