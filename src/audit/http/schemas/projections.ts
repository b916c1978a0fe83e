import { z } from 'zod';
import { isRealDay } from '../../../base/values/calendar-date.ts';
import { accountNamePattern } from '../../../base/values/price.ts';
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
  queryNumber,
  quoteDigest,
  symbol,
  time,
} from '../../../base/http/values.ts';
import { asOf, cursorQuery, next } from '../../../accounts/http/schemas/list-cursor.ts';
import { quoteSource, recoveredJob, refundDue } from './refunds.ts';

export const paymentStates = [
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

const id = queryNumber.pipe(z.int().min(0)).optional();
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
  ...cursorQuery,
  from: instant,
  to: instant,
  ...job,
  payer: address.optional(),
  state: z.enum(paymentStates).optional(),
  network: network.optional(),
  token: z
    .string()
    .regex(/^(?:0x[0-9a-f]{40}|[A-Za-z0-9._-]{1,16})$/)
    .optional()
    .describe("An asset's address, lower case, or its symbol."),
});

const token = { network, asset: address, symbol, decimals };

export const auditedPayment = z.strictObject({
  seq: count.describe('The event that started the payment.'),
  quote_digest: quoteDigest,
  state: z.enum(paymentStates),
  at: time,
  ...recoveredJob,
  ...token,
  amount: atoms,
  payer: address,
  pay_to: address,
  transaction: hex32.nullable(),
  block_number: atoms
    .nullable()
    .describe('The block that proves the payment; null if only the facilitator reported it.'),
  call_id: callId.nullable(),
  settled_at: time.nullable(),
  refunded_at: time
    .nullable()
    .describe('When the last refund of the payment, or of a part of it, was recorded.'),
  refund_transaction: hex32.nullable(),
  refunded_amount: atoms.describe(
    'How much of it was refunded. Its state is `refunded` where that is all of it.',
  ),
  refund_due: refundDue.nullable(),
  refund_due_since: time.nullable(),
  refund_started_at: time.nullable().describe('If a refund is started that has not ended.'),
  refund_requested_at: time
    .nullable()
    .describe('When its payer asked for its money, while an operator has that to decide or to pay.'),
  quote_source: quoteSource,
  last_seq: count.describe('The last event that this row includes.'),
});

export const auditedPayments = z
  .strictObject({ ...asOf, payments: z.array(auditedPayment), next })
  .describe('Payments in the order in which they were started.');
export type AuditedPayments = z.infer<typeof auditedPayments>;

export const paymentHistory = z
  .strictObject({
    quote_digest: quoteDigest,
    state: z.string(),
    paid: z.boolean().nullable(),
    quote_source: quoteSource,
    checkpoint: z
      .string()
      .nullable()
      .describe('The signed tree head of the proofs; null if nothing is sealed.'),
    events: z.array(
      z.strictObject({
        seq: count,
        version: count,
        type: z.string(),
        at: time,
        data: z.looseObject({}),
        leaf_base64: z.base64().describe('The sealed bytes of the event.'),
        proof: inclusionProof.nullable().describe('Null until the next tree head includes the event.'),
      }),
    ),
  })
  .describe('All events of a quote, with their proofs.');
export type PaymentHistoryJson = z.infer<typeof paymentHistory>;

export const callsQuery = z.strictObject({
  ...cursorQuery,
  status: z.enum(['enqueued', 'delivered', 'completed', 'dead_lettered']).optional(),
  ...job,
});

export const auditedCall = z.strictObject({
  call_id: callId,
  seq: count.describe('The event that started its payment.'),
  quote_digest: quoteDigest,
  ...jobName,
  status: z.enum(['enqueued', 'delivered', 'completed', 'dead_lettered']),
  attempts: count,
  enqueued_at: time.describe('When it was first enqueued, also if it was enqueued again since.'),
  ended_at: time.nullable(),
});

export const auditedCalls = z
  .strictObject({ ...asOf, calls: z.array(auditedCall), next })
  .describe('Paid calls in the order of their ids.');
export type AuditedCalls = z.infer<typeof auditedCalls>;

export const creditQuery = z.strictObject({
  ...cursorQuery,
  account: z.string().regex(accountNamePattern).optional().describe('Only the account of this name.'),
});

/** Wider than a balance: a sum over the whole life of the account. */
const creditSum = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,12})(?:\.\d{1,6})?$/)
  .meta({ description: 'In the currency, as a decimal string.', examples: ['4.250001'] });

export const auditedAccount = z
  .strictObject({
    account_id: count,
    account: z.string().nullable(),
    balance: creditSum.describe('The credit that can be spent.'),
    held: creditSum.describe('Credit held for running completions.'),
    granted: creditSum.describe('Credit granted by operators.'),
    topped_up: creditSum.describe('Credit bought, less reversed top-ups.'),
    captured: creditSum.describe('The cost of completions, less corrections.'),
    expired: creditSum,
    last_seq: count.describe('The last event that this row includes.'),
  })
  .describe('An account. `granted` + `topped_up` = `balance` + `held` + `captured` + `expired`.');

export const auditedCredit = z
  .strictObject({ ...asOf, accounts: z.array(auditedAccount), next })
  .describe('Credit accounts in the order of their ids.');
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
        payments: count.describe(
          'Payments settled on that day, without those whose settlement was disproved or reorged out.',
        ),
        amount: atoms,
        completed: count.describe('How many of them have completed calls.'),
        dead_lettered: count,
        refunded: count.describe('How many of them were refunded as a whole.'),
        refunded_amount: atoms.describe('What was refunded of all of them, as a whole or in part.'),
      }),
    ),
    complete: z.boolean().describe('False if rows are missing: request fewer days.'),
  })
  .describe('The income of each job on each day (UTC) of settlement, by token.');
export type Totals = z.infer<typeof totals>;
