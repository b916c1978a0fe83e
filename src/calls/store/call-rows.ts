import type { RowSnapshot, WrongRow } from '../../ledger/store/stored-rows.ts';

/** A call of the outbox, with the hash of its body. */
export interface OutboxRow {
  readonly call_id: number;
  readonly stream: string;
  readonly service_id: number;
  readonly job_index: number;
  readonly network: string | null;
  readonly asset: string | null;
  readonly symbol: string | null;
  readonly caller: string | null;
  /** The payment, as `paymentKey()` names it, or the idempotency key of a trigger. */
  readonly payment: string;
  readonly idempotency_key: string | null;
  readonly claims:
    | readonly { readonly kind: string; readonly key: string; readonly binding: string }[]
    | null;
  readonly status: string;
  readonly trigger_kind: string | null;
  readonly trigger_name: string | null;
  readonly trigger_id: string | null;
  /** Hex with 0x; null if the body is missing. */
  readonly body_sha256: string | null;
  readonly body_bytes: number | null;
}

/** The calls of these payments or triggers. */
export async function readOutbox({ client }: RowSnapshot, payments: readonly string[]): Promise<OutboxRow[]> {
  if (payments.length === 0) return [];
  const { rows } = await client.query<OutboxRow>(
    `select call_id, stream, service_id, job_index, network, asset, symbol, caller, payment, idempotency_key, claims, status,
        trigger_kind, trigger_name, trigger_id, body.sha256 as body_sha256, body.bytes as body_bytes
      from tollbook.call left join lateral tollbook.body_hash(call.body_id) body on true
      where payment = any ($1::text[])`,
    [payments],
  );
  return rows;
}

/** The number of calls in the outbox, and what the lane's row says of them. */
export async function countOutbox({ client }: RowSnapshot): Promise<number> {
  const { rows } = await client.query<{ n: number }>('select count(*) as n from tollbook.call');
  return rows[0]?.n ?? 0;
}

/** The first calls that are none of these. */
export async function findOtherCalls(
  { client }: RowSnapshot,
  callIds: readonly number[],
): Promise<WrongRow[]> {
  const { rows } = await client.query<WrongRow>(
    `select 'call' as "table", null as expected, json_build_object('call_id', call_id, 'stream', stream, 'status', status) as stored
      from tollbook.call where not exists (select from unnest($1::bigint[]) known where known = call_id) limit 20`,
    [callIds],
  );
  return rows;
}

/** A result as an event has it. */
export interface ExpectedResult {
  readonly call_id: number;
  readonly attempt: number;
  /** Hex with 0x. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Of these results those that are stored with other bytes. */
export async function findWrongResults(
  { client }: RowSnapshot,
  results: readonly ExpectedResult[],
): Promise<WrongRow[]> {
  if (results.length === 0) return [];
  const { rows } = await client.query<WrongRow>(
    `select 'call_result' as "table", to_json(e) as expected,
        json_build_object('call_id', e.call_id, 'attempt', e.attempt, 'sha256', found.sha256, 'bytes', found.bytes) as stored
      from json_to_recordset($1) as e(call_id bigint, attempt int, sha256 text, bytes bigint)
      cross join lateral tollbook.result_hash(e.call_id, e.attempt) found
      where (found.sha256, found.bytes) is distinct from (e.sha256, e.bytes) limit 20`,
    [JSON.stringify(results)],
  );
  return rows;
}

/**
 * What the lane says of itself that its events and calls do not, and rows that refer to what is not there: one statement each, over small
 * tables. `stored` has the columns that are compared.
 */
export async function findWrongSmallRows({ client }: RowSnapshot): Promise<WrongRow[]> {
  const found: WrongRow[] = [];
  for (const text of checks) {
    const { rows } = await client.query<WrongRow>(`${text} limit 20`);
    found.push(...rows);
  }
  return found;
}

const checks = [
  `select 'lane' as "table", to_json(e) as expected, json_build_object('lane_id', s.lane_id, 'seq', s.seq, 'open_calls', s.open_calls,
      'unsettled_calls', s.unsettled_calls, 'triggered_calls', s.triggered_calls) as stored
    from (
      select 1 as lane_id, (select coalesce(max(seq), 0) from tollbook.event where lane_id = 1) as seq,
        count(*) filter (where status not in ('dead', 'watched')) as open_calls,
        count(*) filter (where status in ('pending', 'unpaid')) as unsettled_calls,
        count(*) filter (where status <> 'dead' and trigger_kind is not null) as triggered_calls
      from tollbook.call
    ) e full join tollbook.lane s using (lane_id)
    where (e.seq, e.open_calls, e.unsettled_calls, e.triggered_calls)
      is distinct from (s.seq, s.open_calls, s.unsettled_calls, s.triggered_calls)
      or s.at < (select at from tollbook.event where event.lane_id = 1 and event.seq = e.seq)`,
  `select 'lane' as "table", json_build_object('rows', 1) as expected, json_build_object('rows', count(*)) as stored
    from tollbook.lane having count(*) <> 1`,
  `select 'lane_lock' as "table", json_build_object('rows', 1, 'lane_id', 1) as expected,
      json_build_object('rows', count(*), 'lane_id', min(lane_id)) as stored
    from tollbook.lane_lock having count(*) <> 1 or min(lane_id) <> 1`,
  `select 'lane_counter' as "table", null as expected, json_build_object('lane_id', lane_id, 'type', type) as stored
    from tollbook.lane_counter where lane_id <> 1`,
  `select 'log_head' as "table", json_build_object('lane_id', 1, 'size', size) as expected,
      json_build_object('lane_id', lane_id, 'size', size) as stored
    from tollbook.log_head where lane_id <> 1`,
  `select 'log_anchored_head' as "table", null as expected, to_json(s) as stored from tollbook.log_anchored_head s
    where not exists (select from tollbook.log_head head where (head.origin, head.size) = (s.origin, s.size))`,
  `select 'reconciliation' as "table",
      json_build_object('id', id, 'period_from', period_from, 'period_to', period_to, 'size', size, 'root', root, 'result', result,
        'breaks', breaks, 'open_items', open_items, 'sha256', sha256) as stored,
      json_build_object('id', id, 'period_from', (report->'period'->>'from')::timestamptz,
        'period_to', (report->'period'->>'to')::timestamptz, 'size', (report->'ledger'->>'size')::bigint,
        'root', report->'ledger'->>'root', 'result', report->>'result', 'breaks', (report->>'breaks')::int,
        'open_items', (report->>'open_items')::int, 'sha256', hash) as expected
    from (
      select id, sha256, period_from, period_to, size, root, result, breaks, open_items,
        pg_catalog.sha256(convert_to(report, 'UTF8')) as hash,
        -- an edited text that is not JSON is found by its hash
        case when sha256 = pg_catalog.sha256(convert_to(report, 'UTF8')) then report::json end as report
      from tollbook.reconciliation
    ) s
    where sha256 <> hash or (period_from, period_to, size, root, result, breaks, open_items) is distinct from
      ((report->'period'->>'from')::timestamptz, (report->'period'->>'to')::timestamptz, (report->'ledger'->>'size')::bigint,
        report->'ledger'->>'root', report->>'result', (report->>'breaks')::int, (report->>'open_items')::int)`,
  `select 'follow_up' as "table", null as expected, json_build_object('topic', s.topic, 'seq', s.seq, 'network', s.network,
      'block_number', s.block_number) as stored
    from tollbook.follow_up s left join tollbook.event event on event.lane_id = 1 and event.seq = s.seq
    where not coalesce(event.type = any (case s.topic
        when 'confirm' then array['payment_settled', 'settlement_confirmed', 'payment_recovered']
        when 'resolve' then array['settlement_disproved', 'settlement_reorged']
        when 'reverse_top_up' then array['refunded', 'settlement_failed']
        when 'alert' then array['settlement_disproved', 'settlement_reorged', 'payer_mismatch', 'settlement_overdue',
          'operator_usage_implausible', 'operator_payouts_postponed', 'refund_requested']
        when 'unreadable' then array[event.type]
        else '{}' end), false)
      or s.network <> coalesce(event.data::json->>'network', '')
      or s.block_number is distinct from case when s.topic = 'confirm' then (event.data::json->>'block_number')::numeric end`,
  `select 'payout' as "table", null as expected, json_build_object('stream', s.stream, 'expiry', s.expiry) as stored
    from tollbook.payout s
    left join lateral (
      select (accepted.data::json->>'expiry')::numeric as expiry, exists (
        select from tollbook.event earned where earned.stream = accepted.stream and earned.type = 'spend_earned') as is_earned
      from tollbook.event accepted
      where accepted.stream = tollbook.stream_key(s.stream) and accepted.version = 1 and accepted.type = 'spend_accepted'
    ) e on true
    where e.is_earned is not true or s.expiry is distinct from e.expiry`,
  `select 'spend_exposure' as "table", null as expected, json_build_object('stream', s.stream, 'scope', s.scope, 'commitment', s.commitment,
      'nonce', s.nonce, 'amount', s.amount) as stored
    from tollbook.spend_exposure s
    left join lateral (
      select data::json as data from tollbook.event
      where stream = tollbook.stream_key(s.stream) and version = 1 and type = 'spend_accepted'
    ) e on true
    where (s.scope, s.commitment, s.nonce, s.amount) is distinct from (
      substr(e.data->>'network', 8) || '/' || (e.data->>'contract'), e.data->>'commitment',
      (e.data->>'nonce')::numeric, (e.data->>'amount')::numeric)`,
] as const;
