import { bigint, bytea, date, int, json, nullable, numeric, smallint, text } from './columns.ts';

/** The tables of the books, as `schema.ts` has the others. */
export const bookTables = {
  'tollbook.balance_day': {
    generation: int,
    account: int,
    commodity: int,
    day: date,
    debits: numeric,
    credits: numeric,
  },
  'tollbook.book_account': { generation: int, id: int, name: text },
  'tollbook.book_commodity': {
    generation: int,
    id: int,
    decimals: int,
    key: text,
    name: text,
    tag: text,
    symbol: text,
    network: nullable(text),
    asset: nullable(text),
  },
  'tollbook.book_credit': { generation: int, account_id: bigint, granted: bigint, bought: bigint },
  'tollbook.book_payee': { generation: int, network: text, address: text, since: bigint },
  'tollbook.open_item': {
    generation: int,
    account: int,
    opened: bigint,
    closed: nullable(bigint),
    commodity: int,
    name: bytea,
    counterparty: nullable(text),
    lots: json,
    taken: nullable(json),
  },
  'tollbook.posting': {
    generation: int,
    debit: int,
    seq: bigint,
    credit: int,
    commodity: int,
    leg: smallint,
    category: text,
    atoms: numeric,
    quote: nullable(bytea),
  },
} as const;
