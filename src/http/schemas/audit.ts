import { z } from 'zod';
import { isRealDay } from '../../domain/values/calendar-date.ts';
import { refundReasons } from '../../domain/payments/refund.ts';
import { accountNamePattern } from '../../domain/credit/price.ts';
import { inclusionProof } from './log.ts';
import {
  address,
  atoms,
  callId,
  count,
  decimals,
  hex32,
  jobName,
  network,
  quoteDigest,
  symbol,
  time,
} from './values.ts';

const states = [
  'settling',
  'settlement_unknown',
  'settlement_failed',
  'settled',
  'enqueued',
  'delivered',
  'completed',
  'dead_lettered',
  'refunded',
] as const;

const id = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional();
const cursor = z
  .string()
  .max(64)
  .optional()
  .meta({ description: '`next` of the page before, as it is: made by this ledger, for this list.' });
const limit = z.coerce
  .number()
  .int()
  .min(1)
  .max(1_000)
  .default(100)
  .meta({ description: 'At most so many.' });
const instant = z.iso
  .datetime({ offset: true })
  .optional()
  .meta({ description: 'RFC 3339.', examples: ['2026-11-20T06:30:00Z'] });
const day = z
  .string()
  .regex(/^\d{4}-\d\d-\d\d$/)
  .refine(isRealDay)
  .meta({ description: 'A day, UTC.', examples: ['2026-11-20'] });
const job = { service_id: id, job_index: id };

export const paymentsQuery = z.strictObject({
  cursor,
  limit,
  from: instant,
  to: instant,
  ...job,
  payer: address.optional(),
  state: z.enum(states).optional(),
  network: network.optional(),
  token: z
    .string()
    .regex(/^(?:0x[0-9a-f]{40}|[A-Za-z0-9._-]{1,16})$/)
    .optional()
    .meta({ description: "An asset's address, lower case, or its symbol." }),
});

const asOf = { as_of_seq: count.meta({ description: 'The last event that was read for it.' }) };
const next = z.string().nullable().meta({ description: 'The cursor of the next page; null at the end.' });
const token = { network, asset: address, symbol, decimals };

const refundDue = z.enum(refundReasons).meta({
  description:
    'Why its money is owed back: its call is a dead letter; it never had one; it had none and another payment took its quote.',
});

export const auditedPayment = z.strictObject({
  seq: count.meta({ description: 'The event that started it.' }),
  quote_digest: quoteDigest,
  state: z.enum(states),
  at: time,
  ...jobName,
  ...token,
  amount: atoms,
  payer: address,
  pay_to: address,
  transaction: hex32.nullable(),
  block_number: atoms.nullable().meta({ description: 'Where the chain proved it; null on a word alone.' }),
  call_id: callId.nullable(),
  settled_at: time.nullable(),
  refunded_at: time.nullable(),
  refund_transaction: hex32.nullable(),
  refund_due: refundDue.nullable(),
  refund_due_since: time.nullable(),
  last_seq: count.meta({ description: 'The last event that it is made of.' }),
});

export const auditedPayments = z
  .strictObject({ ...asOf, payments: z.array(auditedPayment), next })
  .meta({ description: 'Payments in the order they were started.' });
export type AuditedPayments = z.infer<typeof auditedPayments>;

export const refundsDueQuery = z.strictObject({ cursor, limit });

export const refundsDue = z
  .strictObject({
    ...asOf,
    refunds_due: z.array(
      z.strictObject({
        seq: count.meta({ description: 'The event that started the payment.' }),
        quote_digest: quoteDigest,
        payment_nonce: hex32.meta({ description: 'Names the payment where its quote was paid twice.' }),
        ...jobName,
        ...token,
        amount: atoms,
        payer: address,
        pay_to: address,
        transaction: hex32.meta({ description: 'The one that paid.' }),
        block_number: atoms
          .nullable()
          .meta({ description: 'Where the chain proved it; null on a word alone.' }),
        call_id: callId.nullable(),
        why: refundDue,
        since: time,
        age_secs: count,
      }),
    ),
    next,
  })
  .meta({ description: 'Payments whose money is owed back, in the order they were started.' });
export type RefundsDue = z.infer<typeof refundsDue>;

export const auditedStory = z
  .strictObject({
    quote_digest: quoteDigest,
    state: z.string(),
    paid: z.boolean().nullable(),
    checkpoint: z
      .string()
      .nullable()
      .meta({ description: 'The signed head of the proofs; null where nothing is sealed.' }),
    events: z.array(
      z.strictObject({
        seq: count,
        version: count,
        type: z.string(),
        at: time,
        data: z.looseObject({}),
        leaf_base64: z.base64().meta({ description: 'The bytes that are sealed.' }),
        proof: inclusionProof.nullable().meta({ description: 'Null until the next head.' }),
      }),
    ),
  })
  .meta({ description: 'All that the ledger holds of a quote.' });
export type AuditedStoryJson = z.infer<typeof auditedStory>;

export const callsQuery = z.strictObject({
  cursor,
  limit,
  status: z.enum(['enqueued', 'delivered', 'completed', 'dead_lettered']).optional(),
  ...job,
});

export const auditedCall = z.strictObject({
  call_id: callId,
  seq: count.meta({ description: 'The event that started its payment.' }),
  quote_digest: quoteDigest,
  ...jobName,
  status: z.enum(['enqueued', 'delivered', 'completed', 'dead_lettered']),
  attempts: count,
  enqueued_at: time,
  ended_at: time.nullable(),
});

export const auditedCalls = z
  .strictObject({ ...asOf, calls: z.array(auditedCall), next })
  .meta({ description: 'Paid calls in the order of their ids.' });
export type AuditedCalls = z.infer<typeof auditedCalls>;

export const creditQuery = z.strictObject({
  cursor,
  limit,
  account: z
    .string()
    .regex(accountNamePattern)
    .optional()
    .meta({ description: 'Only the account of this name.' }),
});

/** Wider than an account's own: sums over all its time. */
const creditSum = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,12})(?:\.\d{1,6})?$/)
  .meta({ description: 'In the currency, as a decimal string.', examples: ['4.250001'] });

export const auditedAccount = z
  .strictObject({
    account_id: count,
    account: z.string().nullable(),
    balance: creditSum.meta({ description: 'What can be spent.' }),
    held: creditSum.meta({ description: 'Set aside for completions under way.' }),
    granted: creditSum.meta({ description: 'Given by operators.' }),
    topped_up: creditSum.meta({ description: 'Bought, less what was taken back.' }),
    captured: creditSum.meta({ description: 'What completions have cost, less what was taken back.' }),
    expired: creditSum,
    last_seq: count.meta({ description: 'The last event that it is made of.' }),
  })
  .meta({
    description: 'An account: what was granted and topped up is its balance, held, captured and expired.',
  });

export const auditedCredit = z
  .strictObject({ ...asOf, accounts: z.array(auditedAccount), next })
  .meta({ description: 'Accounts of credit in the order of their ids.' });
export type AuditedCredit = z.infer<typeof auditedCredit>;

export const totalsQuery = z.strictObject({ from: day, to: day, ...job });

export const totals = z
  .strictObject({
    ...asOf,
    totals: z.array(
      z.strictObject({
        day,
        ...jobName,
        ...token,
        payments: count.meta({ description: 'Payments settled on that day, as far as they stand.' }),
        amount: atoms,
        completed: count.meta({ description: 'Those of them whose calls are completed by now.' }),
        dead_lettered: count,
        refunded: count.meta({ description: 'Those of them whose money went back.' }),
        refunded_amount: atoms,
      }),
    ),
    complete: z.boolean().meta({ description: 'False where there are more: ask for fewer days.' }),
  })
  .meta({ description: 'What each job earned on each day (UTC) of settlement, by token.' });
export type Totals = z.infer<typeof totals>;
