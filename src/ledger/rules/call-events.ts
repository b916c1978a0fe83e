import { z } from 'zod';
import { changesQuote, type EventFamily, recordOnly } from './descriptor.ts';
import { count, hex32, operatorName, operatorText, reason } from './fields.ts';

const call = { call_id: count };
const attempt = { ...call, attempt: count };
const undelivered = ['enqueued', 'delivered'] as const;

/** The events of a call: in its quote's stream, or in its own if a trigger made it (trigger-events.ts). */
export const callEvents = {
  enqueued: {
    ...changesQuote,
    schema: z.strictObject({ ...call, payment_nonce: hex32 }),
    transition: { of: 'enqueue' },
    bookkeeping: 'posts',
    counters: ['accepted'],
  },
  /** The call of a payment that was taken back while no runner had it, and that is settled again: not counted twice. */
  enqueued_again: {
    ...changesQuote,
    schema: z.strictObject({ ...call, payment_nonce: hex32 }),
    transition: { of: 'enqueue' },
    bookkeeping: 'posts',
  },
  delivered: {
    ...changesQuote,
    schema: z.strictObject(attempt),
    transition: { of: 'call', from: undelivered, to: 'delivered' },
    counters: ['delivered'],
  },
  delivery_failed: {
    ...recordOnly,
    schema: z.strictObject({ ...attempt, reason, retry_at: count.optional() }),
    transition: { of: 'call', from: undelivered },
    readModels: ['payments'],
  },
  completed: {
    ...changesQuote,
    schema: z.strictObject({
      ...attempt,
      result_sha256: hex32.optional(),
      result_bytes: count.optional(),
      // of a route's answer
      http_status: count.optional(),
      head_sha256: hex32.optional(),
    }),
    transition: { of: 'call', from: undelivered, to: 'completed' },
    bookkeeping: 'posts',
    counters: ['completed'],
  },
  dead_lettered: {
    ...changesQuote,
    schema: z.strictObject({ ...attempt, reason }),
    transition: { of: 'call', from: undelivered, to: 'dead_lettered' },
    bookkeeping: 'posts',
    counters: ['dead_lettered'],
  },
  operator_requeued: {
    ...changesQuote,
    schema: z.strictObject({ ...call, operator: operatorName.optional(), token_id: count.optional() }),
    transition: { of: 'call', from: ['dead_lettered'], to: 'enqueued' },
    bookkeeping: 'posts',
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
