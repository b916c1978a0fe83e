import { bigint, date, int, numeric, oneOf, text, timestamp } from './columns.ts';

/** The tables of what keys use and of what their owners are told, as `schema.ts` has the others. */
export const keyTables = {
  'tollbook.account_webhook': { account_id: bigint, url: text, secret: text, created_at: timestamp },
  'tollbook.budget_message': {
    message_id: bigint,
    channel: oneOf('mail', 'webhook'),
    account_id: bigint,
    key_id: bigint,
    percent: int,
    used: bigint,
    budget: bigint,
    budget_period: oneOf('day', 'month'),
    budget_from: date,
    tries: int,
    created_at: timestamp,
    due_at: timestamp,
  },
  'tollbook.usage_day': {
    generation: int,
    account_id: bigint,
    day: date,
    key_id: bigint,
    requests: bigint,
    failed: bigint,
    cost: bigint,
    prompt_tokens: numeric,
    completion_tokens: numeric,
    cached_tokens: numeric,
    model: text,
  },
} as const;
