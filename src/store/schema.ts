import type { ColumnType } from 'kysely';

/** A column as PostgreSQL names its type; `Value` is what the driver returns for it. */
export interface Column<Value> {
  readonly type: string;
  readonly isNullable: boolean;
  /** For the type only. */
  readonly value?: Value;
}

type Table = Readonly<Record<string, Column<unknown>>>;

const smallint: Column<number> = { type: 'smallint', isNullable: false };
const int: Column<number> = { type: 'integer', isNullable: false };
const bigint: Column<number> = { type: 'bigint', isNullable: false };
const bigints: Column<string[]> = { type: 'bigint[]', isNullable: false };
/** Read as its decimal text: no number could hold it. */
const numeric: Column<string> = { type: 'numeric', isNullable: false };
const boolean: Column<boolean> = { type: 'boolean', isNullable: false };
const text: Column<string> = { type: 'text', isNullable: false };
const texts: Column<string[]> = { type: 'text[]', isNullable: false };
const uuid: Column<string> = { type: 'uuid', isNullable: false };
const bytea: Column<Buffer> = { type: 'bytea', isNullable: false };
const json: Column<unknown> = { type: 'json', isNullable: false };
const timestamp: Column<Date> = { type: 'timestamp with time zone', isNullable: false };
const date: Column<Date> = { type: 'date', isNullable: false };

function oneOf<Value extends string>(..._values: readonly Value[]): Column<Value> {
  return { type: 'text', isNullable: false };
}

function nullable<Value>({ type }: Column<Value>): Column<Value | null> {
  return { type, isNullable: true };
}

/** Every table of the ledger; a test compares them with the database. Its functions write them, queries only read. */
export const ledgerTables = {
  'tollbook.account': {
    account_id: bigint,
    name: text,
    balance: bigint,
    held: bigint,
    used: bigint,
    created_at: timestamp,
  },
  'tollbook.account_credit': {
    generation: int,
    account_id: bigint,
    name: nullable(text),
    balance: bigint,
    held: bigint,
    granted: bigint,
    topped_up: bigint,
    captured: bigint,
    expired: bigint,
    last_seq: bigint,
  },
  'tollbook.api_key': {
    key_id: bigint,
    account_id: bigint,
    hash: bytea,
    prefix: text,
    name: text,
    models: nullable(texts),
    cap: nullable(bigint),
    spent: bigint,
    created_at: timestamp,
    expires_at: nullable(timestamp),
    revoked_at: nullable(timestamp),
    last_used_at: nullable(timestamp),
  },
  'tollbook.call': {
    call_id: bigint,
    stream: text,
    service_id: bigint,
    job_index: bigint,
    status: oneOf('pending', 'watched', 'ready', 'leased', 'dead'),
    body_id: uuid,
    network: text,
    symbol: text,
    caller: nullable(text),
    attempt: int,
    failures: int,
    lease_id: nullable(uuid),
    last_error: nullable(text),
    due_at: timestamp,
    created_at: timestamp,
    payment: nullable(text),
    claims: nullable(json),
  },
  'tollbook.call_body': { body_id: uuid, content_type: nullable(text), body: bytea, created_at: timestamp },
  'tollbook.call_result': {
    call_id: bigint,
    attempt: int,
    lease_id: uuid,
    content_type: nullable(text),
    body: bytea,
    created_at: timestamp,
  },
  'tollbook.chat_hold': {
    chat_id: uuid,
    account_id: bigint,
    key_id: nullable(bigint),
    amount: bigint,
    process_id: uuid,
    started_at: nullable(timestamp),
    created_at: timestamp,
  },
  'tollbook.claim': { kind: text, owner: text, scope: text, key: text, binding: text, stream: text },
  'tollbook.credit_request': {
    request_id: text,
    op: text,
    account_id: bigint,
    amount: bigint,
    balance: bigint,
  },
  'tollbook.event': {
    lane_id: smallint,
    seq: bigint,
    version: int,
    stream: text,
    type: text,
    at: timestamp,
    leaf: bytea,
  },
  'tollbook.follow_up': {
    topic: oneOf('confirm', 'resolve', 'alert', 'reverse_top_up'),
    seq: bigint,
    stream: text,
    network: text,
    block_number: nullable(numeric),
    block_hash: nullable(text),
    first_search_block: nullable(numeric),
    tries: int,
    created_at: timestamp,
    due_at: timestamp,
  },
  'tollbook.function_file': { name: text, sha256: bytea },
  'tollbook.job_day': {
    generation: int,
    day: date,
    service_id: bigint,
    job_index: bigint,
    network: text,
    asset: text,
    symbol: text,
    decimals: int,
    payments: bigint,
    amount: numeric,
    completed: bigint,
    dead_lettered: bigint,
    refunded: bigint,
    refunded_amount: numeric,
  },
  'tollbook.lane': { lane_id: smallint, seq: bigint, at: timestamp, open_calls: bigint },
  'tollbook.lane_batch': { flusher_id: uuid, batch_no: bigint, answer: json, at: timestamp },
  'tollbook.lane_counter': { lane_id: smallint, type: text, count: bigint },
  'tollbook.ledger_cursor': { name: text, seq: bigint },
  'tollbook.log_anchor': { origin: text, name: text, size: bigint, due_at: timestamp },
  'tollbook.log_head': {
    origin: text,
    size: bigint,
    lane_id: smallint,
    root: bytea,
    note: text,
    at: timestamp,
  },
  'tollbook.log_tile': { lane_id: smallint, level: smallint, tile: bigint, hashes: bytea },
  'tollbook.log_tree': { lane_id: smallint, size: bigint, edge: bytea },
  'tollbook.operator_token': {
    token_id: bigint,
    name: text,
    scopes: texts,
    hash: bytea,
    created_at: timestamp,
    expires_at: nullable(timestamp),
    revoked_at: nullable(timestamp),
  },
  'tollbook.paid_call': {
    generation: int,
    call_id: bigint,
    seq: bigint,
    quote_digest: text,
    service_id: bigint,
    job_index: bigint,
    status: text,
    attempts: int,
    enqueued_at: timestamp,
    ended_at: nullable(timestamp),
  },
  'tollbook.payment': {
    generation: int,
    seq: bigint,
    quote_digest: text,
    at: timestamp,
    service_id: bigint,
    job_index: bigint,
    network: text,
    asset: text,
    symbol: text,
    decimals: int,
    amount: numeric,
    payer: text,
    pay_to: text,
    state: text,
    transaction: nullable(text),
    block_number: nullable(numeric),
    call_id: nullable(bigint),
    settled_at: nullable(timestamp),
    last_seq: bigint,
    refunded_at: nullable(timestamp),
    refund_transaction: nullable(text),
    refund_due: nullable(text),
    refund_due_since: nullable(timestamp),
  },
  'tollbook.payout': {
    stream: text,
    status: oneOf('open', 'failed'),
    attempts: int,
    last_reason: nullable(text),
    due_at: timestamp,
    created_at: timestamp,
    expiry: nullable(numeric),
    transaction: nullable(text),
    checks: int,
  },
  'tollbook.process': { process_id: uuid, heartbeat_at: timestamp, alive_since: timestamp },
  'tollbook.projection': {
    generation: int,
    seq: bigint,
    is_active: boolean,
    touched_at: timestamp,
    credit_seq: bigint,
  },
  'tollbook.rate_window': { subject: text, hits: bigints, day: date, day_hits: int, refused_at: bigint },
  'tollbook.reconciliation': {
    id: bigint,
    sha256: bytea,
    period_from: timestamp,
    period_to: timestamp,
    size: bigint,
    root: text,
    result: oneOf('clean', 'open_items', 'breaks'),
    breaks: int,
    open_items: int,
    report: text,
    at: timestamp,
  },
  'tollbook.recovered_chat': {
    chat_id: uuid,
    account_id: bigint,
    key_id: nullable(bigint),
    amount: bigint,
    recovered_at: timestamp,
  },
  'tollbook.secret': { name: text, value: bytea },
  'tollbook.spend_exposure': {
    stream: text,
    scope: text,
    commitment: text,
    nonce: numeric,
    amount: numeric,
    status: oneOf('open', 'failed'),
    created_at: timestamp,
  },
} as const satisfies Record<string, Table>;

/** The tables that better-auth defines; a test compares them with the database. */
export const identityTables = {
  'identity.credential': {
    id: uuid,
    user_id: uuid,
    provider_id: text,
    account_id: text,
    password: nullable(text),
    access_token: nullable(text),
    refresh_token: nullable(text),
    id_token: nullable(text),
    access_token_expires_at: nullable(timestamp),
    refresh_token_expires_at: nullable(timestamp),
    scope: nullable(text),
    created_at: timestamp,
    updated_at: timestamp,
  },
  'identity.session': {
    id: uuid,
    user_id: uuid,
    token: text,
    expires_at: timestamp,
    created_at: timestamp,
    updated_at: timestamp,
    ip_address: nullable(text),
    user_agent: nullable(text),
    ended_reason: nullable(oneOf('ended', 'expired')),
  },
  'identity.siwe_nonce': { nonce: text, issued_at: timestamp },
  'identity.user': {
    id: uuid,
    name: text,
    email: text,
    email_verified: boolean,
    image: nullable(text),
    created_at: timestamp,
    updated_at: timestamp,
  },
  'identity.verification': {
    id: uuid,
    identifier: text,
    value: text,
    expires_at: timestamp,
    created_at: timestamp,
    updated_at: timestamp,
  },
  'identity.wallet': { address: text, user_id: uuid, created_at: timestamp },
} as const satisfies Record<string, Table>;

type ValueOf<C> = C extends Column<infer Value> ? Value : never;
type ReadOnlyTables<T> = {
  [Name in keyof T]: { [C in keyof T[Name]]: ColumnType<ValueOf<T[Name][C]>, never, never> };
};
type WritableTables<T> = {
  [Name in keyof T]: { [C in keyof T[Name]]: ColumnType<ValueOf<T[Name][C]>> };
};

/** The tables as Kysely sees them. */
export type LedgerSchema = ReadOnlyTables<typeof ledgerTables> & WritableTables<typeof identityTables>;
