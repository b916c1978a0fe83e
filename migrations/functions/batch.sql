-- What every batch goes through, whichever way its commands are written. Only the two append functions call these.

-- Takes the lane's lock, which its transaction keeps to the end. `answer` is what the sender gets without anything being
-- recorded: the kept answer of a batch that was recorded before, whichever way, or a halt.
create or replace function tollbook.open_batch(p_lane smallint, p_sender bytea, p_batch_no bigint, p_acknowledged bigint,
  p_content bytea, p_commands text, out head tollbook.lane, out answer json)
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  previous lane_batch;
  is_recovery boolean;
begin
  perform from lane_lock where lane_id = p_lane for update;
  if not found then raise exception 'no lane %', p_lane using errcode = 'no_data_found'; end if;
  select * into strict head from lane where lane_id = p_lane order by batch desc limit 1;

  select * into previous from lane_batch where lane_batch.sender_hash = p_sender
    order by batch_no desc limit 1;
  if previous.batch_no = p_batch_no and previous.content_hash = p_content then
    answer := previous.answer;
    return;
  end if;
  -- A halt is an answer and no error: it reaches the sender only after its commit, for which a primary that was cut off waits
  -- in vain. Such a server lacks what the new primary has acknowledged.
  is_recovery := head.halt_reason is not null and position('"type":"ledger_recovered"' in p_commands) > 0;
  if head.halt_reason is not null and is_recovery is not true then
    answer := json_build_object('halt', json_build_object('seq', head.seq, 'reason', head.halt_reason));
    return;
  end if;
  if previous.batch_no >= p_batch_no then
    raise exception 'batch % of this sender was another one', p_batch_no using errcode = 'unique_violation';
  end if;
  -- Its sender has the answer to a batch that is not kept here: it was pruned, because the sender slept, or the database went back in time.
  -- The sender finds out which, by the last event of that answer.
  if coalesce(previous.batch_no, 0) < p_acknowledged then
    answer := json_build_object('halt', json_build_object('seq', head.seq, 'reason', null));
    return;
  end if;
  -- the operator's recovery is the first event after a halt, and ends it
  if is_recovery then
    update lane set halt_reason = null, halt_known_seq = null, halt_found_seq = null, halted_at = null
    where lane_id = p_lane;
  end if;
end $$;

-- Whether a request was refused within the last ten minutes.
create or replace function tollbook.is_refused(p_key bytea, p_now timestamptz) returns boolean
language plpgsql stable set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return exists (select from refused_request where key = p_key and refused_at > p_now - interval '10 minutes');
end $$;

-- Adds up what batches have counted, and deletes the answers that a later one of the same sender follows. Both wait for this, so that
-- an append only inserts: looking its last rows up and deleting them took a tenth of an append of a single command. It waits for some
-- hundreds, so that few batches a second are not swept one by one. One process at a time calls it, which the cursor of its caller
-- sees to.
create or replace function tollbook.sweep_batches() returns void
language plpgsql volatile set search_path = tollbook, pg_temp
set plan_cache_mode = force_generic_plan set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  if (select count(*) from (select from lane_counter limit 300) counted) < 300 then return; end if;
  with counted as (
    delete from lane_counter returning lane_id, type, batch, count
  )
  insert into lane_counter (lane_id, type, batch, count)
  select lane_id, type, max(batch), sum(count) from counted group by lane_id, type;
  delete from lane_batch where exists (
    select from lane_batch later where later.sender_hash = lane_batch.sender_hash and later.batch_no > lane_batch.batch_no);
end $$;
