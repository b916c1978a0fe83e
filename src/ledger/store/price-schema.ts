import { bigint, bytea, nullable, numeric, text, timestamp } from './columns.ts';

/** The tables of prices, as `schema.ts` has the others. */
export const priceTables = {
  'tollbook.price_list': { list_id: bytea, offered_at: timestamp, valid_until: timestamp },
  'tollbook.price_window': {
    list_id: bytea,
    service_id: bigint,
    job_index: bigint,
    network: text,
    transfer_method: text,
    asset: text,
    pay_to: text,
    amount: numeric,
    price_wei: numeric,
    credit_micros: nullable(numeric),
  },
} as const;
