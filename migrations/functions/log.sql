-- Extends the tree from p_from to p_size leaves and records its head. A compare-and-swap on the size: false, with nothing
-- changed, where another sealer was first, or where the log has another generation, and so another name: a gateway that was
-- running while the ledger was recovered must not sign under the old name. p_rows are the hashes appended to the tiles. The lock is held for this one
-- statement only.
create or replace function tollbook.extend_log(p_lane smallint, p_origin text, p_generation int, p_from bigint, p_size bigint, p_edge bytea,
  p_root bytea, p_note text, p_rows json) returns boolean
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  tree log_tree;
  grown int;
begin
  select * into tree from log_tree where lane_id = p_lane for update;
  if tree.size <> p_from then return false; end if;
  -- what comes after lost events must not be signed under the name that has signed those
  if exists (select from lane where lane_id = p_lane and halt_reason is not null) then return false; end if;
  if p_generation <> 1 + (
    select count(*) from event where stream >= 'recovery:' and stream < 'recovery;' and type = 'ledger_recovered'
  ) then return false; end if;
  if exists (select from log_head where origin = p_origin and size >= p_size) then return false; end if;
  if p_size < p_from or p_size > (select seq from lane where lane_id = p_lane) then
    raise exception 'no tree of % leaves can follow one of %', p_size, p_from using errcode = 'check_violation';
  end if;
  with added as (
    select r.level, r.tile, r."offset", decode(r.hex, 'hex') as hashes
    from json_to_recordset(p_rows) as r(level smallint, tile bigint, "offset" int, hex text)
  ), written as (
    insert into log_tile (lane_id, level, tile, hashes)
    select p_lane, level, tile, hashes from added where "offset" = 0
    returning 1
  ), longer as (
    update log_tile set hashes = log_tile.hashes || added.hashes from added
    where added."offset" > 0 and log_tile.lane_id = p_lane and log_tile.level = added.level
      and log_tile.tile = added.tile and octet_length(log_tile.hashes) = added."offset" * 32
    returning 1
  )
  select (select count(*) from written) + (select count(*) from longer) into grown;
  if grown <> json_array_length(p_rows) then
    raise exception 'the tiles do not end where the tree of % does', p_from using errcode = 'check_violation';
  end if;
  update log_tree set size = p_size, edge = p_edge where lane_id = p_lane;
  insert into log_head (origin, size, lane_id, root, note, at)
  values (p_origin, p_size, p_lane, p_root, p_note, clock());
  return true;
end $$;

grant execute on function tollbook.extend_log to tollbook_writer;
