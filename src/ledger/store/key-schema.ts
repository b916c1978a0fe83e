import { bigint, date, int, nullable, numeric, oneOf, text, timestamp, uuid } from './columns.ts';

/** The tables of the usage of keys and of messages to their owners, as `schema.ts` has the others. */
export const keyTables = {
  'tollbook.account_webhook': { account_id: bigint, url: text, secret: text, created_at: timestamp },
  'tollbook.completion': {
    generation: int,
    account_id: bigint,
    seq: bigint,
    at: timestamp,
    key_id: bigint,
    prompt_tokens: nullable(bigint),
    completion_tokens: nullable(bigint),
    cached_tokens: nullable(bigint),
    cost: nullable(bigint),
    chat_id: uuid,
    status: oneOf('running', 'failed', 'completed', 'cut', 'client_left', 'recovered'),
    model: text,
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
