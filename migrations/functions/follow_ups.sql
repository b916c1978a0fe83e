-- Takes up to p_max settlements of a network whose block is final.
create or replace function tollbook.take_final_settlements(p_network text, p_finalized numeric, p_max int)
returns table (seq bigint, stream text, block_number numeric, block_hash text)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select follow_up.seq from follow_up
    where topic = 'confirm' and network = p_network and follow_up.block_number <= p_finalized and coalesce(retry_at, due_at) <= clock()
      and not is_halted()
    order by follow_up.block_number limit p_max for update skip locked
  )
  update follow_up set tries = tries + 1,
    retry_at = clock() + least(greatest((clock() - created_at) / 4, interval '1 second'), interval '10 minutes')
  where topic = 'confirm' and follow_up.seq in (select due.seq from due)
  returning follow_up.seq,
    (select stream_name(event.stream) from event where event.lane_id = 1 and event.seq = follow_up.seq),
    follow_up.block_number,
    (select event.data::json->>'block_hash' from event where event.lane_id = 1 and event.seq = follow_up.seq)
$$;

-- Takes up to p_max due follow-ups of a topic that have no block to wait for, of one network or of all. The older a
-- follow-up is, the later its next try. Its place in the index moves from its second try on: until then a look passes it, so that looks
-- read those of the last seconds in vain, and never all that wait.
create or replace function tollbook.take_follow_ups(p_topic text, p_network text, p_max int)
returns table (seq bigint, stream text, tries int, first_search_block numeric, age_secs float8)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with due as materialized (
    select follow_up.seq, clock() + least(greatest((clock() - created_at) / 4, interval '2 seconds'), interval '10 minutes') as next_at
    from follow_up
    where topic = p_topic and (p_network is null or network = p_network) and block_number is null
      and due_at <= clock() and coalesce(retry_at, due_at) <= clock()
      -- alerts are still sent
      and (p_topic = 'alert' or not is_halted())
    order by due_at limit p_max for update skip locked
  )
  update follow_up set tries = follow_up.tries + 1, retry_at = due.next_at,
    due_at = case follow_up.tries when 0 then follow_up.due_at else due.next_at end
  from due where topic = p_topic and follow_up.seq = due.seq
  returning follow_up.seq,
    (select stream_name(event.stream) from event where event.lane_id = 1 and event.seq = follow_up.seq), follow_up.tries, follow_up.first_search_block,
    extract(epoch from clock() - created_at)::float8
$$;

-- Records the chain's head when a settlement was first searched for and not found.
create or replace function tollbook.note_first_search_block(p_seq bigint, p_block numeric) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update follow_up set first_search_block = p_block where topic = 'confirm' and seq = p_seq and first_search_block is null
$$;

create or replace function tollbook.end_follow_ups(p_topic text, p_seqs bigint[]) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from follow_up where topic = p_topic and seq = any (p_seqs)
$$;

-- The operator gets an alert about an event that this worker could not read.
create or replace function tollbook.note_unreadable(p_seq bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into follow_up (topic, seq, network, created_at, due_at)
  select 'unreadable', seq, '', clock(), clock() from event where lane_id = 1 and seq = p_seq
  on conflict do nothing
$$;

grant execute on function tollbook.note_unreadable, tollbook.take_final_settlements, tollbook.take_follow_ups, tollbook.note_first_search_block, tollbook.end_follow_ups to tollbook_writer;
