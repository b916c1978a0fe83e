-- The deciding path into the ledger: one call a micro-batch, one implicit transaction. Limits and credit of chats are decided
-- first, then the batch against the committed state. Two commands of one batch that meet on a stream or a claim are not
-- decided against each other: the later one is deferred, and its sender sends it again in the next batch. Batches whose
-- commands meet nothing are written by tollbook.append_uncontended, at a part of the cost.
create or replace function tollbook.append(p_lane smallint, p_flusher uuid, p_batch_no bigint,
  p_acknowledged bigint, p_commands json) returns json
language plpgsql security definer set search_path = tollbook, pg_temp
-- always the same plan of index look-ups, also when it was made for empty tables or from wrong row estimates
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  opened record;
  head lane;
  -- the flusher's id is a secret that no table shows: with it, another process could answer a batch that was never recorded
  sender constant bytea := sha256(uuid_send(p_flusher));
  content constant bytea := sha256(convert_to(p_commands::text, 'UTF8'));
  moment timestamptz;
  stamp timestamptz;
  stamp_text text;
  lockable bigint[];
  ordered bytea[];
  verdicts json := '[]';
  answer json;
begin
  opened := open_batch(p_lane, sender, p_batch_no, p_acknowledged, content, p_commands::text);
  if opened.answer is not null then return opened.answer; end if;
  head := opened.head;
  -- escapes that are no text, as that of NUL: readers of the event could not read it
  if position('\u' in p_commands::text) > 0 then perform p_commands::jsonb; end if;

  moment := date_trunc('milliseconds', clock());
  -- the events' times never go backwards, even where the clock does; everything else follows the clock
  stamp := greatest(moment, head.at);
  stamp_text := to_char(stamp at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

  -- a call that is being leased at this moment defers its command to the next batch: the lane does not wait for it.
  -- Most batches name no call, and are not parsed a second time for it.
  if position('"call_id"' in p_commands::text) > 0 then
    select coalesce(array_agg(locked.call_id), '{}'), array_agg(distinct locked.order_key) filter (where locked.order_key is not null)
    into lockable, ordered from (
      select call.call_id, call.order_key from call
      where call.call_id in (
        select (command.call->>'call_id')::bigint
        from json_to_recordset(p_commands) as command(call json) where command.call is not null)
      order by call.call_id for update skip locked
    ) locked;
  end if;

  if position('"admit":' in p_commands::text) > 0 or position('"credit":' in p_commands::text) > 0 then
    verdicts := decide_credit(p_commands, moment);
  end if;

  with
  command as materialized (
    select t.ord::int as ord, t.stream, t.expect, t.events, t.claims as wanted_claims, t.freed, t.lost, t.lost_stream, t.issued_at, t.ends_at, t.refuses, t.unless_refused, c.*
    from rows from (
      json_to_recordset(p_commands) as (
        stream text, expect int, events json, claims json, freed json, lost json, lost_stream text, issued_at bigint, ends_at bigint, refuses text, unless_refused text, call json)
    ) with ordinality as t(stream, expect, events, claims, freed, lost, lost_stream, issued_at, ends_at, refuses, unless_refused, call, ord)
    left join lateral json_to_record(t.call) as c(
      op text, call_id bigint, lease_id uuid, service_id bigint, job_index bigint, body_id uuid, network text,
      asset text, symbol text, caller text, payment text, idempotency_key text, delay_ms bigint, error text, reason text, runner text, claims json, traceparent text,
      new_call_id bigint, trigger_kind text, trigger_name text, trigger_id text,
      order_key text, key_limit smallint, keeps_key boolean, key_failures int
    ) on t.call is not null
  ),
  wanted as materialized (
    select command.ord, k.pos, k.kind, decode(k.key, 'hex') as key, decode(k.binding, 'hex') as binding,
      k.caller, k.service_id, k.job_index, k.nonce_sha256,
      row_number() over (partition by k.key order by command.ord) as turn
    from command cross join lateral rows from (
      json_to_recordset(command.wanted_claims) as (kind text, key text, binding text, caller text, service_id bigint, job_index bigint, nonce_sha256 text)
    ) with ordinality as k(kind, key, binding, caller, service_id, job_index, nonce_sha256, pos)
    where command.wanted_claims is not null
  ),
  -- the first of a command's claims that is taken already decides its answer
  taken as (
    select distinct on (wanted.ord) wanted.ord, wanted.kind, holder.stream, holder.binding = wanted.binding as same
    from wanted cross join lateral (
      select stream_name(claim.stream) as stream, claim.binding from claim where claim.key = wanted.key
      union all
      select used.stream, null from caller_nonce used where used.caller = wanted.caller and used.service_id = wanted.service_id
        and used.job_index = wanted.job_index and used.nonce_sha256 = wanted.nonce_sha256
      limit 1
    ) holder
    order by wanted.ord, wanted.pos
  ),
  -- the decisions about limits and credit: applied already, recognised by their code
  verdict as materialized (
    select v.ord, v.code, v.is_recorded, v.detail
    from json_to_recordset(verdicts) as v(ord int, code text, is_recorded boolean, detail json)
  ),
  waiting as (
    select ord from (
      select ord, min(ord) over (partition by stream) as first
      from (select ord, stream from command union all select ord, lost_stream from command where lost_stream is not null) s
    ) touched where first < ord
    union select ord from wanted where turn > 1
    union select command.ord from command join call using (call_id) where not command.call_id = any (lockable)
  ),
  decided as materialized (
    select command.*, current.version as current_version, coalesce(verdict.code, taken.kind) as taken_kind,
      taken.stream as taken_stream, verdict.detail, coalesce(verdict.is_recorded, true) as is_recorded,
      target.status as call_status, target.claims as call_claims, target.trigger_kind is not null as is_of_trigger,
      case
        when verdict.code = 'ok' then 'ok'
        when verdict.code is not null then 'refused'
        when taken.same then 'same'
        when taken.ord is not null and (command.lost->taken.kind) is null then 'lost'
        when waiting.ord is not null then 'deferred'
        when taken.ord is not null then 'lost'
        when command.unless_refused is not null and is_refused(decode(command.unless_refused, 'hex'), moment) then 'request_refused'
        when command.expect <> current.version then 'stale'
        -- the quote that it takes was revoked, perhaps after the gateway had read the last revocation
        when command.issued_at < (select quotes_revoked_before()) then 'stale'
        -- it waited too long: another gateway has read this clock since, and may have refused its request for good
        when to_timestamp(command.ends_at) <= moment then 'stale'
        when command.call_id is not null and not coalesce(case command.op
          when 'release' then target.status in ('pending', 'watched', 'unpaid')
          when 'lease' then target.status = 'pending' and target.order_key is null
          when 'remove' then target.status in ('pending', 'watched')
          -- the answer that was stored before the payment was settled completes the call
          when 'answer' then target.status in ('pending', 'watched')
          when 'watch' then target.status = 'pending'
          when 'suspend' then target.status = 'ready'
          when 'mark_unpaid' then target.status = 'leased'
          when 'requeue' then target.status = 'dead'
          when 'discard' then target.status in ('ready', 'dead') or target.status = 'leased' and target.due_at <= moment
          when 'check' then target.status = 'leased' and target.lease_id = command.lease_id
          else target.status in ('leased', 'unpaid') and target.lease_id = command.lease_id end, false
        ) then 'lease_lost'
        else 'ok'
      end as outcome
    from command
    cross join lateral (
      select coalesce(max(event.version), 0) as version from event where event.stream = stream_key(command.stream)
    ) current
    left join verdict using (ord)
    left join taken using (ord)
    left join waiting using (ord)
    left join call target on target.call_id = command.call_id
  ),
  -- what each decision appends, and where: the command's events in its stream, or its refusal in the loser's own stream
  target as (
    select ord, stream, current_version as base, events from decided where outcome = 'ok'
    union all
    select decided.ord, decided.lost_stream, loser.version, decided.lost->decided.taken_kind
    from decided cross join lateral (
      select coalesce(max(event.version), 0) as version from event where event.stream = stream_key(decided.lost_stream)
    ) loser
    where decided.outcome in ('lost', 'refused') and decided.is_recorded and (decided.lost->decided.taken_kind) is not null
  ),
  line as materialized (
    select target.ord, target.stream, target.base + e.pos as version, e.type, e.data,
      head.seq + row_number() over (order by target.ord, e.pos) as seq
    from target cross join lateral rows from (
      json_to_recordset(target.events) as (type text, data json)
    ) with ordinality as e(type, data, pos)
  ),
  recorded as (
    insert into event (lane_id, seq, stream, version, type, at, data)
    select p_lane, seq, stream_key(stream), version, type, stamp, data::text from line order by seq
  ),
  counted as (
    insert into lane_counter (lane_id, type, batch, count)
    select p_lane, type, head.batch + 1, sum(n) from (
      -- a summarised quote was counted by its summary
      select type, 1 as n from line where type <> 'quote_issued' or (line.data->'summarised') is null
      union all
      -- an event that sums refusals counts each as an event of its type
      select summed.key, summed.value::bigint
      from line cross join lateral json_each_text(line.data->'counts') summed
      where line.type = 'refusals_counted'
      union all
      select 'quote_issued', summed.count
      from line cross join lateral json_to_recordset(line.data->'quotes') as summed(count bigint)
      where line.type = 'quotes_issued'
    ) each_event group by type
  ),
  claimed as (
    insert into claim (key, binding, stream)
    select wanted.key, wanted.binding, stream_key(decided.stream)
    from wanted join decided using (ord) where decided.outcome = 'ok' and wanted.caller is null
  ),
  used as (
    insert into caller_nonce (caller, service_id, job_index, nonce_sha256, stream, used_at)
    select wanted.caller, wanted.service_id, wanted.job_index, wanted.nonce_sha256, decided.stream, moment
    from wanted join decided using (ord) where decided.outcome = 'ok' and wanted.caller is not null
  ),
  refusing as (
    insert into refused_request (key, refused_at)
    select distinct decode(refuses, 'hex'), moment from decided where outcome = 'ok' and refuses is not null
    -- where the clock stands still
    on conflict (key, refused_at) do nothing
  ),
  -- The claims that a command frees. A payment that can never land frees all that it claimed except its own nonce; one that failed and
  -- may still land frees none.
  freed as (
    delete from claim using (
      select decided.stream, f.key, f.binding
      from decided cross join lateral json_to_recordset(decided.freed) as f(key text, binding text)
      where decided.outcome = 'ok' and decided.freed is not null
      union all
      select decided.stream, f.key, f.binding
      from decided cross join lateral json_to_recordset(decided.call_claims) as f(key text, binding text)
      where decided.outcome = 'ok' and decided.op = 'remove'
    ) freed_claim
    where claim.key = decode(freed_claim.key, 'hex') and claim.binding = decode(freed_claim.binding, 'hex')
      and claim.stream = stream_key(freed_claim.stream)
  ),
  unused_nonce as (
    delete from caller_nonce using (
      select decided.stream, f.caller, f.service_id, f.job_index, f.nonce_sha256
      from decided cross join lateral json_to_recordset(decided.call_claims) as f(caller text, service_id bigint, job_index bigint, nonce_sha256 text)
      where decided.outcome = 'ok' and decided.op = 'remove'
    ) freed_nonce
    where caller_nonce.caller = freed_nonce.caller and caller_nonce.service_id = freed_nonce.service_id
      and caller_nonce.job_index = freed_nonce.job_index and caller_nonce.nonce_sha256 = freed_nonce.nonce_sha256
      and caller_nonce.stream = freed_nonce.stream
  ),
  added as (
    insert into call (stream, service_id, job_index, status, body_id, network, asset, symbol, caller, payment, idempotency_key, claims, due_at, created_at,
      enqueued_at, traceparent, order_key, key_limit, keeps_key, key_failures)
    select stream, service_id, job_index, 'pending', body_id, network, asset, symbol, caller, payment, idempotency_key, claims,
      moment + coalesce(delay_ms, 0) * interval '1 millisecond', moment, moment, traceparent,
      decode(order_key, 'hex'), key_limit, coalesce(keeps_key, false), key_failures
    from decided where outcome = 'ok' and op = 'add' order by ord
    returning call_id, stream
  ),
  triggered as (
    insert into call (call_id, stream, service_id, job_index, status, body_id, payment, due_at, created_at, enqueued_at, traceparent, trigger_kind,
      trigger_name, trigger_id)
    overriding system value
    select new_call_id, stream, service_id, job_index, 'ready', body_id, payment, moment, moment, moment, traceparent, trigger_kind, trigger_name, trigger_id
    from decided where outcome = 'ok' and op = 'enqueue' order by ord
  ),
  moved as (
    update call set
      status = case decided.op when 'dead_letter' then 'dead' when 'watch' then 'watched' when 'suspend' then 'pending'
        when 'mark_unpaid' then 'unpaid' when 'lease' then 'leased'
        -- a runner has an unpaid call: paid, it is leased as before; given back, it waits for its money
        when 'release' then case call.status when 'unpaid' then 'leased' else 'ready' end
        else case call.status when 'unpaid' then 'pending' else 'ready' end end,
      lease_id = case when keeps_lease then call.lease_id when decided.op = 'lease' then decided.lease_id end,
      attempt = call.attempt + case decided.op when 'lease' then 1 else 0 end,
      failures = case decided.op when 'retry' then call.failures + 1 when 'requeue' then 0 else call.failures end,
      refusals = case when decided.op = 'requeue' then 0
        when decided.op = 'return_lease' and decided.reason = 'status_503' then call.refusals + 1 else call.refusals end,
      last_error = coalesce(decided.error, call.last_error),
      last_reason = coalesce(decided.reason, call.last_reason),
      last_runner = coalesce(decided.runner, call.last_runner),
      enqueued_at = case when decided.op in ('release', 'lease', 'requeue') and not keeps_lease then moment else call.enqueued_at end,
      due_at = case when keeps_lease then call.due_at else moment + coalesce(decided.delay_ms, 0) * interval '1 millisecond' end
    from decided cross join lateral (
      select decided.op = 'mark_unpaid' or decided.op = 'release' and decided.call_status = 'unpaid' as keeps_lease
    ) lease
    where decided.outcome = 'ok' and call.call_id = decided.call_id
      and decided.op in ('release', 'lease', 'watch', 'suspend', 'mark_unpaid', 'retry', 'return_lease', 'dead_letter', 'requeue')
  ),
  finished as (
    delete from call using decided
    where decided.outcome = 'ok' and decided.op in ('complete', 'answer', 'remove', 'discard') and call.call_id = decided.call_id
  ),
  -- a result that was stored and whose completion was never recorded: its runner may not take the call for completed
  unused as (
    delete from call_result using decided
    where decided.outcome = 'ok' and decided.op = 'discard' and call_result.call_id = decided.call_id
  ),
  advanced as (
    insert into lane (lane_id, batch, seq, at, open_calls, unsettled_calls, triggered_calls)
    select p_lane, head.batch + 1, head.seq + (select count(*) from line), stamp,
      head.open_calls + count(*) filter (where op in ('add', 'enqueue', 'requeue') or op = 'release' and call_status = 'watched')
        - count(*) filter (where op in ('complete', 'watch', 'dead_letter') or op in ('remove', 'answer') and call_status = 'pending'
          or op = 'discard' and call_status <> 'dead'),
      head.unsettled_calls + count(*) filter (where op in ('add', 'suspend', 'mark_unpaid'))
        - count(*) filter (where op in ('release', 'lease', 'watch', 'remove', 'answer') and call_status = 'pending'
          or op in ('release', 'complete', 'dead_letter') and call_status = 'unpaid'),
      head.triggered_calls + count(*) filter (where op = 'enqueue' or op = 'requeue' and is_of_trigger)
        - count(*) filter (where is_of_trigger and (op in ('complete', 'dead_letter') or op = 'discard' and call_status <> 'dead'))
    from decided where outcome = 'ok'
    returning seq, open_calls, unsettled_calls, triggered_calls
  ),
  replaced as (
    delete from lane where lane_id = p_lane and batch = head.batch
  )
  select json_build_object(
    'at', stamp_text,
    'clock_ms', (extract(epoch from moment) * 1000)::bigint,
    'seq', (select seq from advanced),
    'open_calls', (select open_calls from advanced),
    'unsettled_calls', (select unsettled_calls from advanced),
    'triggered_calls', (select triggered_calls from advanced),
    'results', coalesce((
      select json_agg(
        case decided.outcome
          when 'ok' then json_build_object('outcome', 'ok', 'version', coalesce(last.version, decided.current_version),
            'seq', last.seq, 'call_id', coalesce(added.call_id, decided.new_call_id), 'detail', decided.detail)
          when 'lost' then json_build_object('outcome', 'lost', 'claim', decided.taken_kind, 'stream', decided.taken_stream)
          when 'refused' then json_build_object('outcome', 'refused', 'code', decided.taken_kind, 'detail', decided.detail)
          when 'same' then json_build_object('outcome', 'same', 'claim', decided.taken_kind, 'stream', decided.taken_stream)
          else json_build_object('outcome', decided.outcome)
        end order by decided.ord)
      from decided
      left join (select ord, max(version) as version, max(seq) as seq from line group by ord) last using (ord)
      left join added on added.stream = decided.stream and decided.op = 'add'), '[]')
  ) into answer;

  if ordered is not null then
    perform keep_order(ordered, (
      select array_agg((command.call->>'call_id')::bigint order by command.ord)
      from rows from (json_to_recordset(p_commands) as (call json)) with ordinality as command(call, ord)
      where command.call->>'call_id' is not null), head.batch + 1);
  end if;

  insert into lane_batch (sender_hash, batch_no, content_hash, answer, at) values (sender, p_batch_no, content, answer, moment);
  return answer;
end $$;

grant execute on function tollbook.append to tollbook_writer;
