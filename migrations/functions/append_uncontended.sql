-- The cheap way into the ledger, for a batch whose commands meet nothing: a few small statements instead of the one large
-- statement of tollbook.append, whose start and end alone cost more than all that a small batch writes. Returns null where a stream
-- is not at the version that its command expects, a claim is taken, a quote is revoked, a call is not in the state that its command
-- needs or is being leased at this moment, a completion does not fit its limits or credit, or a hold is gone: the sender then sends the
-- same batch under the same number to tollbook.append, which decides each command. All checks come before all writes, and every append holds the lane's lock, so what they found still holds when the rows are
-- written. No error is caught: what a check should miss, the unique indexes refuse, and the batch fails as a whole.
--
-- The sender sees to it that no two commands meet and that all are of the kinds that are written here (src/ledger/store/uncontended.ts).
-- The batch's parts come as joined text, which is several times cheaper to take apart than JSON: items are separated by
-- U+001F, fields of one item by U+001E; JSON cannot contain either, and the sender lets no other value through that does.
-- `p_content` is the hash of the batch as tollbook.append takes it: whichever way it was recorded, it is the same batch.
create or replace function tollbook.append_uncontended(p_lane smallint, p_flusher uuid, p_batch_no bigint, p_acknowledged bigint,
  p_content bytea, p_types text, p_data text, p_streams text, p_expected text, p_bodies text, p_claims text, p_added text,
  p_call_ids text, p_call_ops text, p_leases text, p_issued text default '',
  p_admitted text default '', p_settled text default '', p_ends text default '', p_nonces text default '', p_refused text default '',
  p_unless_refused text default '') returns json
language plpgsql security definer set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  sender constant bytea := sha256(uuid_send(p_flusher));
  streams bytea[];
  opened record;
  head lane;
  versions int[];
  counts int[];
  before int[] := '{}';
  recorded int := 0;
  event_count int;
  is_stale boolean;
  claims text[];
  call_ids constant bigint[] := string_to_array(p_call_ids, U&'\001F');
  call_ops constant text[] := string_to_array(p_call_ops, U&'\001F');
  possible int;
  released bigint[];
  answered bigint[];
  leased bigint[];
  leases text[];
  completed bigint[];
  completed_of_triggers int;
  ordered bytea[];
  added bigint[];
  limits text;
  summarised int;
  open_calls bigint;
  unsettled_calls bigint;
  triggered_calls bigint;
  moment timestamptz;
  stamp timestamptz;
  stamp_text text;
  answer json;
begin
  -- before the lock is requested, which so never waits for a body
  if p_bodies <> '' then
    insert into call_body (body_id, content_type, body, created_at)
    select f[1]::uuid, nullif(f[2], ''), decode(f[3], 'base64'), clock()
    from (select string_to_array(item, U&'\001E') as f from unnest(string_to_array(p_bodies, U&'\001F')) item offset 0) body
    on conflict (body_id) do nothing;
  end if;

  opened := open_batch(p_lane, sender, p_batch_no, p_acknowledged, p_content, null);
  if opened.answer is not null then return opened.answer; end if;
  head := opened.head;
  -- tollbook.append looks whether escapes are text, and counts the refusals and quotes that an event sums
  if position('\' in p_data) > 0 or p_types ~ 'refusals_counted|quotes_issued' then return null; end if;

  select array_agg(key.stream order by c.ord), array_agg(current.version order by c.ord),
    array_agg(coalesce(cardinality(string_to_array(c.types, U&'\001E')), 0) order by c.ord),
    bool_or(c.expected <> '' and c.expected::int <> current.version)
  into streams, versions, counts, is_stale
  from rows from (unnest(string_to_array(p_streams, U&'\001F')), unnest(string_to_array(p_expected, U&'\001F')),
    unnest(string_to_array(p_types, U&'\001F'))) with ordinality as c(stream, expected, types, ord)
  cross join lateral (select stream_key(c.stream) as stream offset 0) key
  cross join lateral (select coalesce(max(event.version), 0) as version from event where event.stream = key.stream) current;
  if is_stale then return null; end if;

  -- a quote that a command takes was revoked: tollbook.append says which
  if p_issued <> '' and quotes_revoked_before() > any (string_to_array(p_issued, U&'\001F')::bigint[]) then
    return null;
  end if;

  if p_claims <> '' then
    claims := string_to_array(p_claims, U&'\001F');
    perform from (select string_to_array(item, U&'\001E') as f from unnest(claims) item offset 0) wanted
    cross join lateral (
      select from claim where claim.key = decode(f[1], 'hex') limit 1
    ) holder;
    if found then return null; end if;
  end if;
  if p_nonces <> '' then
    perform from (select string_to_array(item, U&'\001E') as f from unnest(string_to_array(p_nonces, U&'\001F')) item offset 0) wanted
    cross join lateral (
      select from caller_nonce used where used.caller = f[1] and used.service_id = f[2]::bigint and used.job_index = f[3]::bigint
        and used.nonce_sha256 = f[4] limit 1
    ) holder;
    if found then return null; end if;
  end if;

  if p_call_ids <> '' then
    -- The status is compared outside: beside the id, it would make the planner read the index of all calls of that status.
    select count(*), array_agg(step.call_id) filter (where step.op = 'release'),
      array_agg(step.call_id) filter (where step.op = 'answer'),
      array_agg(step.call_id) filter (where step.op = 'lease'),
      array_agg(step.lease_id) filter (where step.op = 'lease'),
      array_agg(step.call_id) filter (where step.op = 'complete'),
      count(*) filter (where step.op = 'complete' and locked.trigger_kind is not null),
      array_agg(distinct locked.order_key) filter (where locked.order_key is not null
        and (step.op <> 'check' or locked.failures >= locked.key_failures))
    into possible, released, answered, leased, leases, completed, completed_of_triggers, ordered
    from rows from (unnest(call_ids), unnest(call_ops), unnest(string_to_array(p_leases, U&'\001F'))) as step(call_id, op, lease_id)
    cross join lateral (
      select call.status, call.lease_id, call.trigger_kind, call.order_key, call.failures, call.key_failures from call where call.call_id = step.call_id for update skip locked
    ) locked
    where case when step.op in ('release', 'answer') then locked.status = 'pending'
      when step.op = 'lease' then locked.status = 'pending' and locked.order_key is null
      else step.op in ('check', 'complete') and locked.status = 'leased' and locked.lease_id = step.lease_id::uuid end;
    if possible < cardinality(call_ids) then return null; end if;
  end if;

  moment := date_trunc('milliseconds', clock());
  -- a command has waited past its end: tollbook.append says which
  if p_ends <> '' and extract(epoch from moment) >= any (string_to_array(p_ends, U&'\001F')::bigint[]) then
    return null;
  end if;
  if p_unless_refused <> '' then
    perform from unnest(string_to_array(p_unless_refused, U&'\001F')) as key where is_refused(decode(key, 'hex'), moment);
    if found then return null; end if;
  end if;
  if p_settled <> '' and not are_held(p_settled) then return null; end if;
  -- the last check, because it writes where all admissions fit
  if p_admitted <> '' then
    limits := admit_uncontended(p_admitted, moment);
    if limits is null then return null; end if;
  end if;

  -- from here on it writes
  stamp := greatest(moment, head.at);
  stamp_text := to_char(stamp at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

  -- How many of the batch's events come before each command's: counted here, since a window function in the statement below, with its
  -- sort, took 7 % of the whole append of a single command.
  foreach event_count in array coalesce(counts, '{}') loop
    before := before || recorded;
    recorded := recorded + event_count;
  end loop;
  insert into event (lane_id, seq, stream, version, type, at, data)
  -- as JSON, so that the data cannot end early and go on with an event's other members
  select p_lane, head.seq + c.before + e.pos, c.stream, c.version + e.pos, e.type, stamp, e.data::json::text
  from rows from (unnest(streams), unnest(versions), unnest(before), unnest(string_to_array(p_types, U&'\001F')),
    unnest(string_to_array(p_data, U&'\001F'))) as c(stream, version, before, types, data)
  cross join lateral rows from (unnest(string_to_array(c.types, U&'\001E')), unnest(string_to_array(c.data, U&'\001E')))
    with ordinality as e(type, data, pos);

  -- Quotes that their summaries have counted. No other event has this member, and within a text its quotes would be escaped.
  -- In bytes: to count the characters of the whole batch took 5 % of it.
  summarised := (octet_length(p_data) - octet_length(replace(p_data, '"summarised":true', ''))) / octet_length('"summarised":true');
  insert into lane_counter (lane_id, type, batch, count)
  select p_lane, type, head.batch + 1, count(*) - case type when 'quote_issued' then summarised else 0 end
  from unnest(string_to_array(replace(p_types, U&'\001F', U&'\001E'), U&'\001E')) as type
  where type <> '' group by type having type <> 'quote_issued' or count(*) > summarised;

  if claims is not null then
    insert into claim (key, binding, stream)
    select decode(f[1], 'hex'), decode(f[2], 'hex'), stream_key(f[3])
    from (select string_to_array(item, U&'\001E') as f from unnest(claims) item offset 0) wanted;
  end if;
  if p_nonces <> '' then
    insert into caller_nonce (caller, service_id, job_index, nonce_sha256, stream, used_at)
    select f[1], f[2]::bigint, f[3]::bigint, f[4], f[5], moment
    from (select string_to_array(item, U&'\001E') as f from unnest(string_to_array(p_nonces, U&'\001F')) item offset 0) wanted;
  end if;
  if p_refused <> '' then
    insert into refused_request (key, refused_at)
    select distinct decode(key, 'hex'), moment from unnest(string_to_array(p_refused, U&'\001F')) as key
    on conflict (key, refused_at) do nothing;
  end if;
  if p_added <> '' then
    with new_call as (
      insert into call (stream, service_id, job_index, status, body_id, network, asset, symbol, caller, payment, claims, due_at, created_at, enqueued_at, traceparent,
        order_key, key_limit, keeps_key, key_failures, idempotency_key)
      select f[1], f[2]::bigint, f[3]::bigint, 'pending', f[4]::uuid, f[5], f[6], f[7], nullif(f[8], ''), f[9], nullif(f[11], '')::json,
        moment + f[10]::bigint * interval '1 millisecond', moment, moment, nullif(f[12], ''),
        decode(nullif(f[13], ''), 'hex'), nullif(f[14], '')::smallint, coalesce(f[15], '') = 'keeps', nullif(f[16], '')::int, nullif(f[17], '')
      from (select string_to_array(item, U&'\001E') as f, ord
        from unnest(string_to_array(p_added, U&'\001F')) with ordinality as wanted(item, ord) offset 0) wanted
      order by ord
      returning call_id
    ) select array_agg(call_id order by call_id) into added from new_call;
  end if;
  if released is not null then
    update call set status = 'ready', lease_id = null, enqueued_at = moment, due_at = moment where call_id = any (released);
  end if;
  if leased is not null then
    update call set status = 'leased', attempt = call.attempt + 1, lease_id = f[1]::uuid, enqueued_at = moment,
      due_at = moment + f[2]::bigint * interval '1 millisecond'
    from (select one.call_id, string_to_array(one.lease, U&'\001E') as f from unnest(leased, leases) as one(call_id, lease) offset 0) wanted
    where call.call_id = wanted.call_id;
  end if;
  if completed is not null or answered is not null then
    delete from call where call_id = any (completed || answered);
  end if;
  if ordered is not null then perform keep_order(ordered, call_ids, head.batch + 1); end if;

  if p_settled <> '' then perform settle_uncontended(p_settled, moment); end if;

  open_calls := head.open_calls + coalesce(cardinality(added), 0) - coalesce(cardinality(completed), 0) - coalesce(cardinality(answered), 0);
  unsettled_calls := head.unsettled_calls + coalesce(cardinality(added), 0) - coalesce(cardinality(released), 0) - coalesce(cardinality(leased), 0) - coalesce(cardinality(answered), 0);
  triggered_calls := head.triggered_calls - coalesce(completed_of_triggers, 0);
  insert into lane (lane_id, batch, seq, at, open_calls, unsettled_calls, triggered_calls)
    values (p_lane, head.batch + 1, head.seq + recorded, stamp, open_calls, unsettled_calls, triggered_calls);
  delete from lane where lane_id = p_lane and batch = head.batch;

  -- the sender knows how many events each command has, and makes the commands' results of this
  answer := format('{"at":"%s","clock_ms":%s,"seq":%s,"open_calls":%s,"unsettled_calls":%s,"triggered_calls":%s,"versions":[%s],"added":[%s],"limits":[%s]}',
    stamp_text, (extract(epoch from moment) * 1000)::bigint, head.seq + recorded, open_calls, unsettled_calls, triggered_calls,
    array_to_string(versions, ','), array_to_string(added, ','), limits);
  insert into lane_batch (sender_hash, batch_no, content_hash, answer, at) values (sender, p_batch_no, p_content, answer, moment);
  return answer;
end $$;

grant execute on function tollbook.append_uncontended to tollbook_writer;
