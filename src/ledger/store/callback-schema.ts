import { bigint, bytea, int, nullable, oneOf, text, timestamp } from './columns.ts';

/** The table of callbacks, as `schema.ts` has the others. */
export const callbackTables = {
  'tollbook.callback': {
    stream: bytea,
    binding: bytea,
    url: text,
    payer: text,
    created_at: timestamp,
    seq: nullable(bigint),
    told_seq: bigint,
    seen_at: nullable(timestamp),
    due_at: nullable(timestamp),
    tries: int,
    outcome: nullable(oneOf('delivered', 'given_up')),
    outcome_at: nullable(timestamp),
    last_failure: nullable(text),
  },
} as const;
