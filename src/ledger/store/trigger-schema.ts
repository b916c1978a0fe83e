import { bigint, bytea, json, nullable, numeric, text, timestamp } from './columns.ts';

/** The tables of triggers, as `schema.ts` has the others. */
export const triggerTables = {
  'tollbook.chain_cursor': {
    trigger_name: text,
    network: text,
    terms: bytea,
    look: bigint,
    begun_at: timestamp,
    due_at: timestamp,
    reached: nullable(json),
    head: nullable(numeric),
    ok_at: timestamp,
    problem: nullable(text),
  },
  'tollbook.cron_cursor': { trigger_name: text, terms: bytea, handled_until: timestamp, seen_at: timestamp },
} as const;
