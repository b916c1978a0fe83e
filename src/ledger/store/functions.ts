import type pg from 'pg';
import {
  bigint,
  bigints,
  boolean,
  bytea,
  date,
  type Column,
  float,
  int,
  ints,
  json,
  nullable,
  numeric,
  oneOf,
  smallint,
  text,
  texts,
  timestamp,
  uuid,
  uuids,
  type ValueOf,
  nothing,
} from './columns.ts';
import { textLiteral } from './text-literal.ts';

export interface Signature {
  readonly takes: readonly Column<unknown>[];
  /** One value. */
  readonly returns?: Column<unknown>;
  /** Rows of these columns. */
  readonly rows?: Readonly<Record<string, Column<unknown>>>;
}

const leasedCall = { call_id: bigint, lease_id: uuid, attempt: int, failures: int, stream: text } as const;
const job = { service_id: bigint, job_index: bigint } as const;

/** Signatures of our SQL functions in the schema `tollbook`; a test compares them with the database. */
export const functionSignatures = {
  activate_projection: { takes: [int], returns: nullable(int) },
  apply_projection: {
    takes: [int, bigint, bigint, json, json, json, json, json, nullable(json)],
    returns: boolean,
  },
  begin_projection: { takes: [], returns: int },
  begin_prune_round: { takes: [int], returns: boolean },
  begin_round: {
    takes: [text, text, text, int],
    rows: { round: int, payload: json, ok_at: timestamp, begun_at: timestamp },
  },
  collect_callbacks: { takes: [int], returns: int },
  collect_follow_ups: { takes: [int], returns: int },
  collect_payouts: { takes: [int], returns: int },
  collect_top_up_reversals: { takes: [int], returns: int },
  count_attempts: { takes: [texts, ints, ints], rows: { retry_ms: bigint, is_first_refusal: boolean } },
  create_api_key: {
    takes: [
      bigint,
      bytea,
      text,
      nullable(texts),
      nullable(bigint),
      nullable(timestamp),
      boolean,
      nullable(bigint),
      nullable(text),
    ],
    returns: bigint,
  },
  create_operator_token: {
    takes: [text, texts, bytea, nullable(timestamp), nullable(texts)],
    returns: bigint,
  },
  end_callback: { takes: [text, bytea, bigint, nullable(text), nullable(text)], returns: nothing },
  end_exposure: { takes: [text, boolean], returns: nothing },
  end_follow_ups: { takes: [text, bigints], returns: nothing },
  end_message: { takes: [bigint], returns: nothing },
  end_payout: { takes: [text, nullable(text)], returns: nothing },
  end_prune_round: {
    takes: [],
    rows: { round: bigint, kind: text, count: bigint, before: timestamp },
  },
  end_round: {
    takes: [text, text, text, int, int, json, nullable(text)],
    returns: boolean,
  },
  erase_callbacks: { takes: [texts, int], returns: int },
  erase_refund_reasons: { takes: [texts, int], returns: int },
  erase_results: { takes: [texts, int], returns: int },
  erase_user: { takes: [uuid, bigint, texts], returns: boolean },
  expose_spend: { takes: [text, text, text, numeric, numeric, numeric, numeric, numeric], returns: boolean },
  extend_log: { takes: [smallint, text, int, bigint, bigint, bytea, text], returns: boolean },
  extend_prices: { takes: [bytea, int], returns: boolean },
  forget_gateway: { takes: [uuid], returns: nothing },
  forget_prune_round: { takes: [bigint], returns: nothing },
  forget_result_upload: { takes: [bigint, uuid], returns: nothing },
  gateway_heartbeat: { takes: [uuid], returns: nothing },
  halt_ledger: { takes: [text, nullable(bigint), nullable(bigint)], returns: nothing },
  heartbeat: { takes: [uuid, float], returns: nothing },
  hold_leases: {
    takes: [bigints, uuids, uuids, bigints, int, int],
    rows: { call_id: bigint, lease_id: uuid, lasts_ms: bigint },
  },
  is_halted: { takes: [], returns: boolean },
  is_process_silent: { takes: [uuid, uuid, float], returns: boolean },
  lease_call: {
    takes: [bigint, int, int],
    rows: {
      ...leasedCall,
      ...job,
      network: nullable(text),
      asset: nullable(text),
      symbol: nullable(text),
      caller: nullable(text),
      payment: text,
      lease_until: timestamp,
      traceparent: nullable(text),
    },
  },
  lease_top_ups: {
    takes: [json, int, int, boolean, int],
    rows: {
      ...leasedCall,
      is_too_old: boolean,
    },
  },
  next_account_id: { takes: [], returns: bigint },
  next_call_id: { takes: [], returns: bigint },
  note_first_search_block: { takes: [bigint, numeric], returns: nothing },
  note_pruned: { takes: [text, bigint, bigint], returns: nothing },
  note_result_part: { takes: [bigint, uuid, int], returns: nothing },
  note_runner_gone: { takes: [text, bigint, timestamp, int], returns: int },
  note_unreadable: { takes: [bigint], returns: nothing },
  offer_prices: { takes: [bytea, int, json], returns: nothing },
  open_user_account: {
    takes: [uuid],
    rows: { account_id: bigint, is_new: boolean, is_recorded: boolean },
  },
  postpone_payout: { takes: [text, int, text], returns: nothing },
  postpone_unsettled: { takes: [bigint, int], returns: nothing },
  prune: { takes: [text, bigint, int], returns: int },
  prune_projections: { takes: [int, int], returns: int },
  prune_short_lived: { takes: [int], returns: int },
  pull_due_times: { takes: [int], returns: int },
  put_callback: { takes: [text, bytea, text, text], returns: nothing },
  put_refund_reason: { takes: [text, text, text], returns: nothing },
  put_stored_result: {
    takes: [bigint, int, uuid, nullable(text), bigint, bytea, nullable(text)],
    rows: { sha256: text, bytes: bigint },
  },
  queue_alert: {
    takes: [texts, text, text, text, text, json, nullable(timestamp), nullable(text)],
    returns: nothing,
  },
  reach_standby: { takes: [], returns: nothing },
  record_anchor: { takes: [text, text, bigint], returns: nothing },
  record_database_identity: { takes: [nullable(text), bigint, nullable(int)], returns: nothing },
  record_key_uses: { takes: [bigints], returns: nothing },
  record_reconciliation: { takes: [text], returns: bigint },
  renew_round: { takes: [text, text, text, int, int], returns: boolean },
  report_alerts: {
    takes: [uuid, json, boolean, texts, int, int],
    rows: {
      is_sender: boolean,
      kind: nullable(text),
      subject: nullable(text),
      status: nullable(oneOf('firing', 'resolved')),
      text: nullable(text),
    },
  },
  report_progress: { takes: [bigint, uuid, nullable(float), nullable(text), bigints], returns: boolean },
  resend_payout: { takes: [text, text], returns: nothing },
  return_callback: { takes: [text, bytea, bigint, bigint, text], returns: nothing },
  return_message: { takes: [bigint], returns: nothing },
  revoke_api_key: { takes: [bigint], returns: boolean },
  revoke_operator_token: { takes: [bigint], returns: boolean },
  schedule_anchor: { takes: [text, text, int], returns: nothing },
  set_account_disabled: { takes: [bigint, boolean], returns: boolean },
  set_account_webhook: { takes: [bigint, nullable(text), nullable(text)], returns: nothing },
  take_anchor: { takes: [text, text, int], rows: { size: bigint, note: text } },
  take_budget_messages: {
    takes: [text, int],
    rows: {
      message_id: bigint,
      account_id: bigint,
      account: text,
      key_id: bigint,
      key_name: nullable(text),
      percent: int,
      used: bigint,
      budget: bigint,
      budget_period: oneOf('day', 'month'),
      budget_from: date,
      until: timestamp,
      tries: int,
      url: nullable(text),
      secret: nullable(text),
      created_at: timestamp,
    },
  },
  take_callbacks: {
    takes: [int, texts],
    rows: {
      stream: text,
      binding: bytea,
      url: text,
      seq: bigint,
      tries: int,
      age_secs: float,
      payer: text,
    },
  },
  take_event_allowance: { takes: [text, int, int, int], returns: int },
  take_final_settlements: {
    takes: [text, numeric, int],
    rows: { seq: bigint, stream: text, block_number: numeric, block_hash: text },
  },
  take_follow_ups: {
    takes: [text, nullable(text), int],
    rows: { seq: bigint, stream: text, tries: int, first_search_block: nullable(numeric), age_secs: float },
  },
  take_messages: {
    takes: [text, text, int, nullable(int)],
    rows: { task_id: bigint, payload: json, tries: int, created_at: timestamp },
  },
  take_new_payouts: { takes: [int, int], rows: { stream: text, attempts: int } },
  take_old_calls: {
    takes: [json, int, int, int],
    rows: {
      ...leasedCall,
      ...job,
    },
  },
  take_sent_payouts: {
    takes: [int, int],
    rows: { stream: text, attempts: int, transaction: text, checks: int },
  },
  take_unrepeated_calls: {
    takes: [json, int, int],
    rows: {
      ...leasedCall,
      ...job,
      left_by_client: boolean,
    },
  },
  take_unsettled: {
    takes: [int],
    rows: {
      call_id: bigint,
      stream: text,
      status: oneOf('pending', 'watched'),
      payment: text,
      attempt: int,
      age_secs: float,
      traceparent: nullable(text),
    },
  },
  unused_result_uploads: { takes: [int], rows: { call_id: bigint, lease_id: uuid, parts: int } },
  watch_payout: { takes: [text, text, int], returns: nothing },
  worker_heartbeat: { takes: [uuid], returns: nothing },
} as const satisfies Record<string, Signature>;

type Signatures = typeof functionSignatures;
type NameWith<Member extends keyof Signature> = {
  [Name in keyof Signatures]: Signatures[Name] extends Readonly<Record<Member, unknown>> ? Name : never;
}[keyof Signatures];
type Argument<Value> = Value extends number
  ? number | bigint
  : Value extends readonly (infer Element)[]
    ? readonly Element[]
    : Value;
type Arguments<Takes> = { readonly [I in keyof Takes]: Argument<ValueOf<Takes[I]>> };
type ArgumentsOf<Name extends keyof Signatures> = Arguments<Signatures[Name]['takes']>;

/** The value that a function returns. */
export async function callFunction<Name extends NameWith<'returns'>>(
  pool: pg.Pool,
  name: Name,
  args: ArgumentsOf<Name>,
): Promise<ValueOf<Signatures[Name]['returns']>> {
  const { rows } = await pool.query<{ value: ValueOf<Signatures[Name]['returns']> }>(
    `select tollbook.${name}(${literals(name, args)}) as value`,
  );
  const [row] = rows;
  if (!row) throw new Error(`tollbook.${name} returned no row`);
  return row.value;
}

/** The rows that a function returns. */
export async function callTableFunction<Name extends NameWith<'rows'>>(
  pool: pg.Pool,
  name: Name,
  args: ArgumentsOf<Name>,
): Promise<{ [C in keyof Signatures[Name]['rows']]: ValueOf<Signatures[Name]['rows'][C]> }[]> {
  const { rows } = await pool.query<{
    [C in keyof Signatures[Name]['rows']]: ValueOf<Signatures[Name]['rows'][C]>;
  }>(`select * from tollbook.${name}(${literals(name, args)})`);
  return rows;
}

/**
 * Arguments as literals, so that a call is one simple-protocol message: these functions lock rows, and a client that
 * disappears between the messages of the extended protocol would keep the locks.
 */
function literals(name: keyof Signatures, args: readonly unknown[]): string {
  const { takes }: Signature = functionSignatures[name];
  return takes.map(({ type }, index) => literal(args[index], type)).join(', ');
}

function literal(value: unknown, type: string): string {
  if (value === null) return `null::${type}`;
  if (type === 'json') return `${quoted(JSON.stringify(value))}::json`;
  if (Array.isArray(value))
    return `array[${value.map((element) => quoted(String(element))).join(', ')}]::${type}`;
  if (Buffer.isBuffer(value)) return `'\\x${value.toString('hex')}'::bytea`;
  if (value instanceof Date) return `'${value.toISOString()}'::${type}`;
  if (typeof value === 'number' && type !== float.type) return `'${Math.trunc(value)}'::${type}`;
  if (typeof value === 'string') return `${quoted(value)}::${type}`;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean')
    return `'${value}'::${type}`;
  throw new TypeError(`no literal of type ${type} for a value of type ${typeof value}`);
}

function quoted(value: string): string {
  if (value.includes('\0')) throw new RangeError('PostgreSQL text cannot hold a NUL character');
  return textLiteral(value);
}
