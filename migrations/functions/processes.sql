-- A heartbeat of a process. After a gap longer than p_gap_secs, alive_since starts anew. Times of a clock that was ahead become those
-- of now: a process that ended meanwhile would otherwise count as alive for as long as the clock was ahead.
create or replace function tollbook.heartbeat(p_process uuid, p_gap_secs float8) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update process set heartbeat_at = now, alive_since = least(alive_since, now) from (select clock() as now) as moment
  where process_id in (
    select other.process_id from process as other
    where other.heartbeat_at > clock() and other.process_id <> p_process for update skip locked);
  insert into process (process_id, heartbeat_at, alive_since) select p_process, now, now from clock() as now
  on conflict (process_id) do update set heartbeat_at = excluded.heartbeat_at, alive_since = case
    when process.heartbeat_at between excluded.heartbeat_at - p_gap_secs * interval '1 second' and excluded.heartbeat_at
      then process.alive_since
    else excluded.heartbeat_at end
$$;

-- Whether p_process has sent no heartbeat for p_silent_secs, so that p_by may end its holds. False where p_by itself had a
-- gap in that time: then it, or the database, was unreachable, and other processes may have been too.
create or replace function tollbook.is_process_silent(p_process uuid, p_by uuid, p_silent_secs float8) returns boolean
language sql volatile set search_path = tollbook, pg_temp as $$
  select exists (select from process own
      where own.process_id = p_by and own.alive_since <= since and own.heartbeat_at > lately)
    and not exists (select from process owner where owner.process_id = p_process and owner.heartbeat_at > since)
  from (select now - silence as since, now - silence / 2 as lately
    from (select clock() as now, p_silent_secs * interval '1 second' as silence) moment) past
$$;

-- A heartbeat of a process that runs the workers. Those that ended long ago are forgotten.
create or replace function tollbook.worker_heartbeat(p_process uuid) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into worker_process (process_id, heartbeat_at) values (p_process, clock())
  on conflict (process_id) do update set heartbeat_at = excluded.heartbeat_at;
  delete from worker_process where heartbeat_at < clock() - interval '1 day'
$$;

-- A heartbeat of a live gateway, which shows that the database takes writes, and others that the gateway runs. Those that ended long ago
-- are forgotten.
create or replace function tollbook.gateway_heartbeat(p_process uuid) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into gateway_process (process_id, heartbeat_at) values (p_process, clock())
  on conflict (process_id) do update set heartbeat_at = excluded.heartbeat_at;
  delete from gateway_process where heartbeat_at < clock() - interval '1 day'
$$;

-- A gateway has ended: no process waits for its heartbeats.
create or replace function tollbook.forget_gateway(p_process uuid) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from gateway_process where process_id = p_process
$$;

grant execute on function tollbook.worker_heartbeat, tollbook.gateway_heartbeat, tollbook.forget_gateway, tollbook.heartbeat, tollbook.is_process_silent to tollbook_writer;
