-- Settlements that are open: found again by whoever has time, in any process, until they are resolved.

-- watched: the payment is said to have failed, but its authorization still holds; should it land after all, the call is
-- there. It takes no room in the outbox.
alter table tollbook.call drop constraint call_status_check;
alter table tollbook.call add constraint call_status_check
  check (status in ('held', 'watched', 'ready', 'leased', 'dead'));
-- which payment of its stream it is paid by, and what that payment holds besides its own name
alter table tollbook.call add column payment text collate "C", add column claims json;
create index call_unsettled on tollbook.call (status, due_at) where status in ('held', 'watched');
-- those that were held before this migration
update tollbook.call set payment = (
  select format('%s/eip3009/%s/%s/%s', paid->>'network', paid->>'asset', paid->>'payer', paid->>'nonce')
  from (
    select convert_from(event.leaf, 'UTF8')::json->'data'->'payment' as paid from tollbook.event
    where event.stream = call.stream and event.type = 'settlement_started' order by event.version desc limit 1) started)
  where status = 'held';

-- Places in the ledger that something is still wanted for: `confirm` a settlement on the chain until it is final,
-- `resolve` one that does not stand while a runner has its call, `alert` the operator. Filled from the events in their
-- order, emptied as they are done.
create table tollbook.follow_up (
  topic text collate "C" not null check (topic in ('confirm', 'resolve', 'alert')),
  seq bigint not null,
  stream text collate "C" not null,
  network text collate "C" not null,
  -- where the settlement stands on the chain; null while nobody has seen it there
  block_number numeric,
  block_hash text,
  -- how far the chain was when a settlement that nobody has seen there was first looked for
  seen_at_block numeric,
  tries int not null default 0,
  created_at timestamptz not null,
  due_at timestamptz not null,
  primary key (topic, seq)
) with (autovacuum_vacuum_scale_factor = 0.01);
create index follow_up_proven on tollbook.follow_up (network, block_number) where block_number is not null;
create index follow_up_due on tollbook.follow_up (topic, due_at) where block_number is null;

-- How far each reader of the ledger has come.
create table tollbook.checkpoint (
  name text collate "C" primary key,
  seq bigint not null
);
insert into tollbook.checkpoint values ('follow_up', 0);

-- The append function once more, with the call's part in it: a call that is held back or watched, and what a payment gives
-- up when it fails.
create or replace function tollbook.append(p_lane smallint, p_flusher uuid, p_batch_no bigint, p_commands json) returns json
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
      symbol text, caller text, payment text, delay_ms bigint, error text
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
      target.status as call_status, target.claims as call_claims,
      case
        when taken.same then 'same'
        when taken.ord is not null and (command.lost->taken.kind) is null then 'lost'
        when waiting.ord is not null then 'deferred'
        when taken.ord is not null then 'lost'
        when command.expect <> current.version then 'stale'
        when command.call_id is not null and not coalesce(case command.op
          when 'release' then target.status in ('held', 'watched')
          when 'withdraw' then target.status in ('held', 'watched')
          when 'watch' then target.status = 'held'
          when 'hold_back' then target.status = 'ready' and target.attempt = 0
          when 'requeue' then target.status = 'dead'
          else target.status = 'leased' and target.lease_id = command.lease_id end, false
        ) then 'lease_lost'
        else 'ok'
      end as outcome
    from command
    cross join lateral (
      select coalesce(max(event.version), 0) as version from event where event.stream = command.stream
    ) current
    left join taken using (ord)
    left join waiting using (ord)
    left join call target on target.call_id = command.call_id
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
  -- what a command gives up, and what the payment of a call gives up with it: all but its own name
  freed as (
    delete from claim using (
      select decided.stream, f.kind, f.owner, f.scope, f.key, f.binding
      from decided cross join lateral json_to_recordset(decided.freed)
        as f(kind text, owner text, scope text, key text, binding text)
      where decided.outcome = 'ok' and decided.freed is not null
      union all
      select decided.stream, f.kind, f.owner, f.scope, f.key, f.binding
      from decided cross join lateral json_to_recordset(decided.call_claims)
        as f(kind text, owner text, scope text, key text, binding text)
      where decided.outcome = 'ok' and decided.op in ('watch', 'withdraw') and f.kind <> 'payment'
    ) given_up
    where claim.kind = given_up.kind and claim.owner = given_up.owner and claim.scope = given_up.scope
      and claim.key = given_up.key and claim.stream = given_up.stream and claim.binding = given_up.binding
  ),
  held as (
    insert into call (stream, service_id, job_index, status, body_id, network, symbol, caller, payment, claims, due_at, created_at)
    select stream, service_id, job_index, 'held', body_id, network, symbol, caller, payment, claims,
      stamp + coalesce(delay_ms, 0) * interval '1 millisecond', stamp
    from decided where outcome = 'ok' and op = 'hold' order by ord
    returning call_id, stream
  ),
  moved as (
    update call set
      status = case decided.op when 'dead' then 'dead' when 'watch' then 'watched' when 'hold_back' then 'held' else 'ready' end,
      lease_id = null,
      failures = case decided.op when 'retry' then call.failures + 1 when 'requeue' then 0 else call.failures end,
      last_error = coalesce(decided.error, call.last_error),
      due_at = stamp + coalesce(decided.delay_ms, 0) * interval '1 millisecond'
    from decided
    where decided.outcome = 'ok' and decided.op in ('release', 'watch', 'hold_back', 'retry', 'give_back', 'dead', 'requeue') and call.call_id = decided.call_id
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
        select count(*) filter (where op in ('hold', 'requeue') or op = 'release' and call_status = 'watched')
          - count(*) filter (where op in ('complete', 'watch', 'dead') or op = 'withdraw' and call_status = 'held')
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

-- Takes up to p_max open settlements that are due, those that nobody has called failed first. The next look at each comes the later, the older it is; nobody has to
-- give one back, so a process that dies holds nothing up.
create function tollbook.take_unsettled(p_max int)
returns table (call_id bigint, stream text, status text, payment text, age_secs float8)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select call.call_id from call
    where call.status in ('held', 'watched') and call.due_at <= clock()
    order by call.status, call.due_at limit p_max for update skip locked
  )
  update call set due_at = clock() + case call.status
    when 'held' then least(greatest((clock() - created_at) / 4, interval '1 second'), interval '1 minute')
    else least(greatest((clock() - created_at) / 2, interval '5 seconds'), interval '2 minutes') end
  where call.call_id in (select due.call_id from due)
  returning call.call_id, call.stream, call.status, call.payment, extract(epoch from clock() - call.created_at)::float8
$$;

-- Moves the next look at an open settlement.
create function tollbook.postpone_unsettled(p_call_id bigint, p_delay_ms int) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update call set due_at = clock() + p_delay_ms * interval '1 millisecond'
  where call_id = p_call_id and status in ('held', 'watched')
$$;

-- Looks through up to p_max events that nobody has looked through yet, and notes those that want a follow-up. Returns how
-- many events it read.
create function tollbook.collect_follow_ups(p_max int) returns int
language plpgsql volatile security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  head bigint;
  last bigint;
begin
  select seq into head from checkpoint where name = 'follow_up' for update skip locked;
  if not found then return 0; end if;
  select max(read.seq) into last from (
    select event.seq from event where lane_id = 1 and event.seq > head order by event.seq limit p_max) read;
  if last is null then return 0; end if;
  insert into follow_up (topic, seq, stream, network, block_number, block_hash, created_at, due_at)
  select topic, wanted.seq, wanted.stream, data->>'network',
    case topic when 'confirm' then (data->>'block_number')::numeric end,
    case topic when 'confirm' then data->>'block_hash' end, clock(), clock()
  from (
    select event.seq, event.stream, event.type, convert_from(event.leaf, 'UTF8')::json->'data' as data from event
    where lane_id = 1 and event.seq > head and event.seq <= last and event.type in (
      'payment_settled', 'settlement_confirmed',
      'settlement_disproved', 'settlement_reorged', 'payer_mismatch', 'settlement_overdue')
  ) wanted
  cross join lateral unnest(case
    when wanted.type in ('payment_settled', 'settlement_confirmed') then array['confirm']
    when data->>'call' = 'kept' then array['resolve', 'alert']
    else array['alert'] end) as topic
  where not (topic = 'confirm' and data->>'evidence' = 'operator' and data->>'block_number' is null)
  on conflict do nothing;
  update checkpoint set seq = last where name = 'follow_up';
  return last - head;
end $$;

-- Takes up to p_max settlements of a network whose block is final.
create function tollbook.take_proven(p_network text, p_finalized numeric, p_max int)
returns table (seq bigint, stream text, block_number numeric, block_hash text)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select follow_up.seq from follow_up
    where topic = 'confirm' and network = p_network and follow_up.block_number <= p_finalized and due_at <= clock()
    order by follow_up.block_number limit p_max for update skip locked
  )
  update follow_up set tries = tries + 1,
    due_at = clock() + least(greatest((clock() - created_at) / 4, interval '1 second'), interval '10 minutes')
  where topic = 'confirm' and follow_up.seq in (select due.seq from due)
  returning follow_up.seq, follow_up.stream, follow_up.block_number, follow_up.block_hash
$$;

-- Takes up to p_max follow-ups of a topic that have no block to wait for, of one network or of all. The next try comes the
-- later, the older they are.
create function tollbook.take_follow_ups(p_topic text, p_network text, p_max int)
returns table (seq bigint, stream text, tries int, seen_at_block numeric, age_secs float8)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select follow_up.seq from follow_up
    where topic = p_topic and (p_network is null or network = p_network) and block_number is null and due_at <= clock()
    order by due_at limit p_max for update skip locked
  )
  update follow_up set tries = follow_up.tries + 1,
    due_at = clock() + least(greatest((clock() - created_at) / 4, interval '2 seconds'), interval '10 minutes')
  where topic = p_topic and follow_up.seq in (select due.seq from due)
  returning follow_up.seq, follow_up.stream, follow_up.tries, follow_up.seen_at_block,
    extract(epoch from clock() - created_at)::float8
$$;

-- Notes how far the chain was when a settlement was first looked for in vain.
create function tollbook.note_seen_block(p_seq bigint, p_block numeric) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update follow_up set seen_at_block = p_block where topic = 'confirm' and seq = p_seq and seen_at_block is null
$$;

-- Gives up what nobody could bring to an end within a month. A piece at a time; returns how many went.
create function tollbook.sweep_follow_ups(p_max int) returns int
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with old as (
    delete from follow_up where (topic, seq) in (
      select topic, seq from follow_up where created_at < clock() - interval '30 days' limit p_max)
    returning 1
  )
  select count(*)::int from old
$$;

create function tollbook.end_follow_ups(p_topic text, p_seqs bigint[]) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from follow_up where topic = p_topic and seq = any (p_seqs)
$$;

grant select on tollbook.follow_up, tollbook.checkpoint to tollbook_writer;
revoke execute on function tollbook.take_unsettled(int), tollbook.postpone_unsettled(bigint, int),
  tollbook.collect_follow_ups(int), tollbook.take_proven(text, numeric, int), tollbook.take_follow_ups(text, text, int),
  tollbook.note_seen_block(bigint, numeric), tollbook.sweep_follow_ups(int), tollbook.end_follow_ups(text, bigint[])
  from public;
grant execute on function tollbook.take_unsettled(int), tollbook.postpone_unsettled(bigint, int),
  tollbook.collect_follow_ups(int), tollbook.take_proven(text, numeric, int), tollbook.take_follow_ups(text, text, int),
  tollbook.note_seen_block(bigint, numeric), tollbook.sweep_follow_ups(int), tollbook.end_follow_ups(text, bigint[])
  to tollbook_writer;
