import type { ColumnType, GeneratedAlways } from 'kysely';

/** The tables as Kysely sees them. All writing goes through SQL functions, so nothing here can be inserted or updated. */
type ReadOnly<T> = ColumnType<T, never, never>;

export interface LedgerSchema {
  'tollbook.lane': {
    lane_id: ReadOnly<number>;
    seq: ReadOnly<number>;
    at: ReadOnly<Date>;
    open_calls: ReadOnly<number>;
  };
  'tollbook.lane_counter': { lane_id: ReadOnly<number>; type: ReadOnly<string>; count: ReadOnly<number> };
  'tollbook.event': {
    lane_id: ReadOnly<number>;
    seq: ReadOnly<number>;
    stream: ReadOnly<string>;
    version: ReadOnly<number>;
    type: ReadOnly<string>;
    at: ReadOnly<Date>;
    leaf: ReadOnly<Buffer>;
  };
  'tollbook.claim': {
    kind: ReadOnly<string>;
    owner: ReadOnly<string>;
    scope: ReadOnly<string>;
    key: ReadOnly<string>;
    binding: ReadOnly<string>;
    stream: ReadOnly<string>;
  };
  'tollbook.call': {
    call_id: GeneratedAlways<number>;
    stream: ReadOnly<string>;
    service_id: ReadOnly<number>;
    job_index: ReadOnly<number>;
    status: ReadOnly<'pending' | 'watched' | 'ready' | 'leased' | 'dead'>;
    payment: ReadOnly<string | null>;
    lease_id: ReadOnly<string | null>;
    last_error: ReadOnly<string | null>;
    attempt: ReadOnly<number>;
    failures: ReadOnly<number>;
    due_at: ReadOnly<Date>;
    created_at: ReadOnly<Date>;
  };
  'tollbook.call_result': {
    call_id: ReadOnly<number>;
    attempt: ReadOnly<number>;
    lease_id: ReadOnly<string>;
    content_type: ReadOnly<string | null>;
    body: ReadOnly<Buffer>;
  };
  'tollbook.account': {
    account_id: GeneratedAlways<number>;
    name: ReadOnly<string>;
    balance: ReadOnly<number>;
    held: ReadOnly<number>;
    used: ReadOnly<number>;
    created_at: ReadOnly<Date>;
  };
  'tollbook.api_key': {
    key_id: GeneratedAlways<number>;
    account_id: ReadOnly<number>;
    hash: ReadOnly<Buffer>;
    prefix: ReadOnly<string>;
    name: ReadOnly<string>;
    models: ReadOnly<string[] | null>;
    cap: ReadOnly<number | null>;
    spent: ReadOnly<number>;
    created_at: ReadOnly<Date>;
    expires_at: ReadOnly<Date | null>;
    revoked_at: ReadOnly<Date | null>;
    last_used_at: ReadOnly<Date | null>;
  };
  'tollbook.operator_token': {
    token_id: GeneratedAlways<number>;
    name: ReadOnly<string>;
    scopes: ReadOnly<string[]>;
    hash: ReadOnly<Buffer>;
    created_at: ReadOnly<Date>;
    expires_at: ReadOnly<Date | null>;
    revoked_at: ReadOnly<Date | null>;
  };
  'tollbook.follow_up': {
    topic: ReadOnly<'confirm' | 'resolve' | 'alert' | 'reverse_top_up'>;
    seq: ReadOnly<number>;
    stream: ReadOnly<string>;
    created_at: ReadOnly<Date>;
  };
  'tollbook.secret': { name: ReadOnly<string>; value: ReadOnly<Buffer> };
}
