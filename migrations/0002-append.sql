-- The only way into the ledger: one call a micro-batch, one implicit transaction.
-- The batch is decided against what is committed. Two commands of one batch that meet on a stream or a claim are not
-- decided against each other: the later one is deferred, and its sender sends it again in the next batch.
create function tollbook.append(p_lane smallint, p_flusher uuid, p_batch_no bigint, p_commands json) returns json
language plpgsql security definer set search_path = tollbook, pg_temp
-- one plan for ever, made of index look-ups: planned on an empty table or on guessed row counts it must be the same
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  head lane;
  previous lane_batch;
  stamp timestamptz;
  stamp_text text;
  lockable bigint[];
  answer json;
begin
  select * into head from lane where lane_id = p_lane for update;
  if not found then raise exception 'no lane %', p_lane using errcode = 'no_data_found'; end if;

  select * into previous from lane_batch where flusher_id = p_flusher;
  if previous.batch_no >= p_batch_no then return previous.answer; end if;

  -- a lane's times never run backwards, whatever the clock does
  stamp := greatest(date_trunc('milliseconds', clock()), head.at);
  stamp_text := to_char(stamp at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

  -- a call that somebody is leasing this instant makes its command wait for the next batch, not the lane for the lease;
  -- most batches name no call yet, and are not read twice for it
  if position('"call_id"' in p_commands::text) > 0 then
    select coalesce(array_agg(locked.call_id), '{}') into lockable from (
      select call.call_id from call
      where call.call_id in (
        select (command.call->>'call_id')::bigint
        from json_to_recordset(p_commands) as command(call json) where command.call is not null)
      order by call.call_id for update skip locked
    ) locked;
  end if;

  with
  command as materialized (
    select t.ord::int as ord, t.stream, t.expect, t.events, t.claims, t.freed, t.lost, t.lost_stream, c.*
    from rows from (
      json_to_recordset(p_commands) as (
        stream text, expect int, events json, claims json, freed json, lost json, lost_stream text, call json)
    ) with ordinality as t(stream, expect, events, claims, freed, lost, lost_stream, call, ord)
    left join lateral json_to_record(t.call) as c(
      op text, call_id bigint, lease_id uuid, service_id bigint, job_index bigint, body_id uuid, network text,
      symbol text, caller text, delay_ms bigint, error text
    ) on t.call is not null
  ),
  wanted as materialized (
    select command.ord, k.pos, k.kind, k.owner, k.scope, k.key, k.binding,
      row_number() over (partition by k.kind, k.owner, k.scope, k.key order by command.ord) as turn
    from command cross join lateral rows from (
      json_to_recordset(command.claims) as (kind text, owner text, scope text, key text, binding text)
    ) with ordinality as k(kind, owner, scope, key, binding, pos)
    where command.claims is not null
  ),
  -- the first of a command's claims that somebody already holds decides its answer
  taken as (
    select distinct on (wanted.ord) wanted.ord, wanted.kind, holder.stream, holder.binding = wanted.binding as same
    from wanted cross join lateral (
      select claim.stream, claim.binding from claim
      where claim.kind = wanted.kind and claim.owner = wanted.owner and claim.scope = wanted.scope and claim.key = wanted.key
      limit 1
    ) holder
    order by wanted.ord, wanted.pos
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
    select command.*, current.version as current_version, taken.kind as taken_kind, taken.stream as taken_stream,
      case
        when taken.same then 'same'
        when taken.ord is not null and (command.lost->taken.kind) is null then 'lost'
        when waiting.ord is not null then 'deferred'
        when taken.ord is not null then 'lost'
        when command.expect <> current.version then 'stale'
        when command.call_id is not null and not exists (
          select from call where call.call_id = command.call_id and case command.op
            when 'release' then call.status = 'held'
            when 'withdraw' then call.status = 'held'
            when 'requeue' then call.status = 'dead'
            else call.status = 'leased' and call.lease_id = command.lease_id end
        ) then 'lease_lost'
        else 'ok'
      end as outcome
    from command
    cross join lateral (
      select coalesce(max(event.version), 0) as version from event where event.stream = command.stream
    ) current
    left join taken using (ord)
    left join waiting using (ord)
  ),
  -- what each decision writes, and where: the command's events in its stream, or its refusal in the loser's own
  target as (
    select ord, stream, current_version as base, events from decided where outcome = 'ok'
    union all
    select decided.ord, decided.lost_stream, loser.version, decided.lost->decided.taken_kind
    from decided cross join lateral (
      select coalesce(max(event.version), 0) as version from event where event.stream = decided.lost_stream
    ) loser
    where decided.outcome = 'lost' and (decided.lost->decided.taken_kind) is not null
  ),
  line as materialized (
    select target.ord, target.stream, target.base + e.pos as version, e.type, e.data,
      head.seq + row_number() over (order by target.ord, e.pos) as seq
    from target cross join lateral rows from (
      json_to_recordset(target.events) as (type text, data json)
    ) with ordinality as e(type, data, pos)
  ),
  recorded as (
    insert into event (lane_id, seq, stream, version, type, at, leaf)
    select p_lane, seq, stream, version, type, stamp, convert_to(
      '{"at":"' || stamp_text || '","data":' || data::text || ',"lane":' || p_lane || ',"schema":1,"seq":' || seq
      || ',"stream":"' || stream || '","type":"' || type || '","version":' || version || '}', 'UTF8')
    from line order by seq
  ),
  counted as (
    insert into lane_counter (lane_id, type, count)
    select p_lane, type, count(*) from line group by type
    on conflict (lane_id, type) do update set count = lane_counter.count + excluded.count
  ),
  claimed as (
    insert into claim (kind, owner, scope, key, binding, stream)
    select wanted.kind, wanted.owner, wanted.scope, wanted.key, wanted.binding, decided.stream
    from wanted join decided using (ord) where decided.outcome = 'ok'
  ),
  freed as (
    delete from claim using decided
    cross join lateral json_to_recordset(decided.freed) as f(kind text, owner text, scope text, key text)
    where decided.outcome = 'ok' and decided.freed is not null and claim.stream = decided.stream
      and claim.kind = f.kind and claim.owner = f.owner and claim.scope = f.scope and claim.key = f.key
  ),
  held as (
    insert into call (stream, service_id, job_index, status, body_id, network, symbol, caller, due_at, created_at)
    select stream, service_id, job_index, 'held', body_id, network, symbol, caller, stamp, stamp
    from decided where outcome = 'ok' and op = 'hold' order by ord
    returning call_id, stream
  ),
  moved as (
    update call set
      status = case decided.op when 'dead' then 'dead' else 'ready' end,
      lease_id = null,
      failures = case decided.op when 'retry' then call.failures + 1 when 'requeue' then 0 else call.failures end,
      last_error = coalesce(decided.error, call.last_error),
      due_at = stamp + coalesce(decided.delay_ms, 0) * interval '1 millisecond'
    from decided
    where decided.outcome = 'ok' and decided.op in ('release', 'retry', 'give_back', 'dead', 'requeue') and call.call_id = decided.call_id
  ),
  finished as (
    delete from call using decided
    where decided.outcome = 'ok' and decided.op in ('complete', 'withdraw') and call.call_id = decided.call_id
  ),
  advanced as (
    update lane set
      seq = head.seq + (select count(*) from line),
      at = stamp,
      open_calls = head.open_calls + (
        select count(*) filter (where op in ('hold', 'requeue')) - count(*) filter (where op in ('complete', 'withdraw', 'dead'))
        from decided where outcome = 'ok')
    where lane_id = p_lane
    returning seq, open_calls
  )
  select json_build_object(
    'at', stamp_text,
    'seq', (select seq from advanced),
    'open_calls', (select open_calls from advanced),
    'results', coalesce((
      select json_agg(
        case decided.outcome
          when 'ok' then json_build_object('outcome', 'ok', 'version', coalesce(last.version, decided.current_version),
            'seq', last.seq, 'call_id', held.call_id)
          when 'lost' then json_build_object('outcome', 'lost', 'claim', decided.taken_kind, 'stream', decided.taken_stream)
          when 'same' then json_build_object('outcome', 'same', 'claim', decided.taken_kind, 'stream', decided.taken_stream)
          else json_build_object('outcome', decided.outcome)
        end order by decided.ord)
      from decided
      left join (select ord, max(version) as version, max(seq) as seq from line group by ord) last using (ord)
      left join held on held.stream = decided.stream and decided.op = 'hold'), '[]')
  ) into answer;

  insert into lane_batch (flusher_id, batch_no, answer, at) values (p_flusher, p_batch_no, answer, stamp)
  on conflict (flusher_id) do update set batch_no = excluded.batch_no, answer = excluded.answer, at = excluded.at;
  return answer;
end $$;

-- Takes up to p_max calls that are due, for p_lease_secs, service by service in turn, so that a long queue of one does not
-- hold up the others. The lease id is the fencing token: an older holder finds its own gone. A lease that ran out is
-- simply due again.
create function tollbook.lease_calls(p_services bigint[], p_max int, p_lease_secs int)
returns table (call_id bigint, lease_id uuid, attempt int, failures int, stream text, service_id bigint,
  job_index bigint, network text, symbol text, caller text, lease_until timestamptz, content_type text, body bytea)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select oldest.call_id, oldest.turn
    from unnest(p_services) as wanted(service_id) cross join lateral (
      select locked.call_id, row_number() over (order by locked.due_at, locked.call_id) as turn from (
        select call.call_id, call.due_at from call
        where call.service_id = wanted.service_id and call.status in ('ready', 'leased') and call.due_at <= clock()
        order by call.due_at limit p_max for update skip locked) locked
    ) oldest
  ), leased as (
    update call set status = 'leased', attempt = call.attempt + 1, lease_id = gen_random_uuid(),
      -- a lease that ran out was a failure that nobody reported
      failures = call.failures + case call.status when 'leased' then 1 else 0 end,
      due_at = clock() + p_lease_secs * interval '1 second'
    where call.call_id in (select due.call_id from due order by due.turn, due.call_id limit p_max)
    returning call.*
  )
  select leased.call_id, leased.lease_id, leased.attempt, leased.failures, leased.stream, leased.service_id,
    leased.job_index, leased.network, leased.symbol, leased.caller, leased.due_at, call_body.content_type, call_body.body
  from leased left join call_body using (body_id)
  order by leased.call_id
$$;

-- Moves the end of a lease that is still held; no row where it is not.
create function tollbook.extend_lease(p_call_id bigint, p_lease_id uuid, p_lease_secs int) returns setof timestamptz
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update call set due_at = clock() + p_lease_secs * interval '1 second'
  where call_id = p_call_id and lease_id = p_lease_id and status = 'leased'
  returning due_at
$$;

create function tollbook.put_body(p_body_id uuid, p_content_type text, p_body bytea) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into call_body (body_id, content_type, body) values (p_body_id, p_content_type, p_body)
$$;

-- The small bodies of a batch: sent in one message with it and written before its lock is asked for.
create function tollbook.put_bodies(p_bodies json) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into call_body (body_id, content_type, body)
  select b.body_id, b.content_type, decode(b.base64, 'base64')
  from json_to_recordset(p_bodies) as b(body_id uuid, content_type text, base64 text)
  on conflict (body_id) do nothing
$$;

create function tollbook.put_result(p_call_id bigint, p_attempt int, p_lease_id uuid, p_content_type text, p_body bytea)
returns void language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into call_result (call_id, attempt, lease_id, content_type, body)
  values (p_call_id, p_attempt, p_lease_id, p_content_type, p_body)
  on conflict (call_id, attempt) do update set
    lease_id = excluded.lease_id, content_type = excluded.content_type, body = excluded.body
$$;

-- Drops what no call can need again: bodies without a call, answers of flushers that are long gone. A piece at a time,
-- so that no backlog is too long for one statement; returns how many rows went.
create function tollbook.sweep(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with old_body as (
    delete from call_body where body_id in (
      select body_id from call_body where created_at < clock() - interval '1 hour'
        and not exists (select from call where call.body_id = call_body.body_id) limit p_max)
    returning 1
  ), old_batch as (
    delete from lane_batch where flusher_id in (
      select flusher_id from lane_batch where at < clock() - interval '1 day' limit p_max)
    returning 1
  )
  select (select count(*) from old_body)::int + (select count(*) from old_batch)::int
$$;

-- The gateway works as this role: it can read, and change things only through the functions above.
do $$ begin
  create role tollbook_writer nologin;
exception
  when duplicate_object or unique_violation then null;
end $$;
do $$ begin
  execute format('grant tollbook_writer to %I', current_user);
exception
  when insufficient_privilege then
    raise warning 'tollbook_writer cannot be granted to %: the gateway will work with the owner''s rights', current_user;
end $$;
grant usage on schema tollbook to tollbook_writer;
grant select on all tables in schema tollbook to tollbook_writer;
revoke execute on all functions in schema tollbook from public;
grant execute on function tollbook.clock(), tollbook.append(smallint, uuid, bigint, json),
  tollbook.lease_calls(bigint[], int, int), tollbook.put_body(uuid, text, bytea), tollbook.put_bodies(json),
  tollbook.extend_lease(bigint, uuid, int), tollbook.put_result(bigint, int, uuid, text, bytea), tollbook.sweep(int) to tollbook_writer;
