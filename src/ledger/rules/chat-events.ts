import { z } from 'zod';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { count, micros, modelPrice, reason, visibleName } from './fields.ts';

/** How a completion ended. `recovered`: its process ended first, and its cost is the upper bound. */
export const chatEndings = ['completed', 'cut', 'client_left', 'recovered'] as const;

const caller = {
  caller: z.enum(['api_key', 'session', 'spend_auth', 'x402', 'anonymous']),
  key_id: count.optional(),
  account_id: count.optional(),
};
const ofChat = { of: 'entity', kind: 'chat' } as const;

/** Chat completions: never a prompt, an answer or a client's address. */
export const chatEvents = {
  chat_admitted: {
    ...recordOnly,
    schema: z.strictObject({
      ...caller,
      model: visibleName,
      streaming: z.boolean(),
      /** What is charged for its tokens, whatever the configuration says when it ends; none of a free model. */
      price: modelPrice.optional(),
    }),
    transition: { ...ofChat, from: ['none'], to: 'admitted' },
    readModels: ['usage'],
  },
  chat_refused: {
    ...recordOnly,
    schema: z.strictObject({ ...caller, code: reason, model: visibleName.optional() }),
    transition: { ...ofChat, from: ['none'], to: 'refused' },
  },
  /** Recorded twice if a process was taken for dead and reported the actual cost later. */
  chat_completed: {
    ...recordOnly,
    schema: z.strictObject({
      ending: z.enum(chatEndings),
      model: visibleName,
      upstream: visibleName.optional(),
      prompt_tokens: count,
      completion_tokens: count,
      /** Of the prompt's, those that the upstream read from its cache and wrote to it. */
      cached_tokens: count.optional(),
      cache_write_tokens: count.optional(),
      /** Some tokens were counted or bounded by the gateway, not reported by the upstream. */
      is_estimate: z.boolean(),
      cost_micros: micros,
      /** The part of the cost above the hold: the upstream wrote more than it was allowed to. */
      uncovered_micros: micros.optional(),
      first_byte_ms: count.optional(),
      latency_ms: count.optional(),
      reason: reason.optional(),
    }),
    transition: { ...ofChat, from: ['admitted', 'completed'], to: 'completed' },
    bookkeeping: 'context',
    readModels: ['usage'],
  },
  /** Nothing was delivered and nothing is charged. */
  chat_failed: {
    ...recordOnly,
    schema: z.strictObject({ reason, model: visibleName, upstream: visibleName.optional() }),
    transition: { ...ofChat, from: ['admitted'], to: 'failed' },
    readModels: ['usage'],
  },
} as const satisfies EventFamily;
