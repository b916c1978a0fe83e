import { z } from 'zod';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { count, hex32, operatorName, operatorText, reason } from './fields.ts';

const call = { call_id: count };
const attempt = { ...call, attempt: count };
const undelivered = ['enqueued', 'delivered'] as const;

/** The events of a call: in its quote's stream, or in its own where a trigger made it (trigger-events.ts). */
export const callEvents = {
  enqueued: {
    schema: z.strictObject({ ...call, payment_nonce: hex32 }),
    transition: { of: 'enqueue' },
    quoteState: 'changes',
    uniqueness: 'none',
    credit: 'none',
    bookkeeping: 'posts',
    reopens: 'none',
    reconciliation: 'needed',
    readModels: ['payments'],
    counters: ['accepted'],
    followUps: 'none',
  },
  /** The call of a payment that was taken back while no runner had it, and that is settled again: not counted twice. */
  enqueued_again: {
    schema: z.strictObject({ ...call, payment_nonce: hex32 }),
    transition: { of: 'enqueue' },
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
  delivered: {
    schema: z.strictObject(attempt),
    transition: { of: 'call', from: undelivered, to: 'delivered' },
    quoteState: 'changes',
    uniqueness: 'none',
    credit: 'none',
    bookkeeping: 'none',
    reopens: 'none',
    reconciliation: 'needed',
    readModels: ['payments'],
    counters: ['delivered'],
    followUps: 'none',
  },
  delivery_failed: {
    schema: z.strictObject({ ...attempt, reason, retry_at: count.optional() }),
    transition: { of: 'call', from: undelivered },
    quoteState: 'none',
    uniqueness: 'none',
    credit: 'none',
    bookkeeping: 'none',
    reopens: 'none',
    reconciliation: 'none',
    readModels: ['payments'],
    counters: 'none',
    followUps: 'none',
  },
  completed: {
    schema: z.strictObject({
      ...attempt,
      result_sha256: hex32.optional(),
      result_bytes: count.optional(),
    }),
    transition: { of: 'call', from: undelivered, to: 'completed' },
    quoteState: 'changes',
    uniqueness: 'none',
    credit: 'none',
    bookkeeping: 'posts',
    reopens: 'none',
    reconciliation: 'needed',
    readModels: ['payments'],
    counters: ['completed'],
    followUps: 'none',
  },
  dead_lettered: {
    schema: z.strictObject({ ...attempt, reason }),
    transition: { of: 'call', from: undelivered, to: 'dead_lettered' },
    quoteState: 'changes',
    uniqueness: 'none',
    credit: 'none',
    bookkeeping: 'posts',
    reopens: 'none',
    reconciliation: 'needed',
    readModels: ['payments'],
    counters: ['dead_lettered'],
    followUps: 'none',
  },
  operator_requeued: {
    schema: z.strictObject({ ...call, operator: operatorName.optional(), token_id: count.optional() }),
    transition: { of: 'call', from: ['dead_lettered'], to: 'enqueued' },
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
  /** The operator gave a dead letter up: it is not delivered any more, and its refund stays due. */
  operator_discarded: {
    ...recordOnly,
    schema: z.strictObject({
      ...call,
      why: operatorText,
      operator: operatorName,
      token_id: count.optional(),
    }),
    transition: { of: 'call', from: ['dead_lettered'] },
  },
} as const satisfies EventFamily;
