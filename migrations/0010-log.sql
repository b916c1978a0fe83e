-- The tamper-evident log: an RFC 6962 tree over the events' leaf bytes, in the order of seq, and its signed heads.

-- How far the tree has grown, with its right edge: all that is needed to go on.
create table tollbook.log_tree (
  lane_id smallint primary key references tollbook.lane,
  size bigint not null,
  edge bytea not null
);
insert into tollbook.log_tree values (1, 0, '');

-- The tree's hashes, 256 a tile. Hashes do not compress.
create table tollbook.log_tile (
  lane_id smallint not null,
  level smallint not null,
  tile bigint not null,
  hashes bytea not null,
  primary key (lane_id, level, tile)
);
alter table tollbook.log_tile alter column hashes set storage external;

-- Every head that was ever signed. One of a size, whoever signs: two would be two histories.
create table tollbook.log_head (
  origin text collate "C" not null,
  size bigint not null,
  lane_id smallint not null,
  root bytea not null,
  note text not null,
  at timestamptz not null,
  primary key (origin, size)
);
create trigger log_head_is_immutable before update or delete or truncate on tollbook.log_head
  for each statement execute function tollbook.refuse_change();

-- How far each anchor has been told, and when it is told next.
create table tollbook.log_anchor (
  origin text collate "C" not null,
  name text collate "C" not null,
  size bigint not null,
  due_at timestamptz not null,
  primary key (origin, name)
);

-- Grows the tree from p_from to p_size leaves and records its head, or does nothing and says false: then another sealer
-- was first. p_rows are the hashes that the tiles get. The lock lives inside this one statement.
create function tollbook.extend_log(p_lane smallint, p_origin text, p_from bigint, p_size bigint, p_edge bytea,
  p_root bytea, p_note text, p_rows json) returns boolean
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  tree log_tree;
  grown int;
begin
  select * into tree from log_tree where lane_id = p_lane for update;
  if tree.size <> p_from then return false; end if;
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

-- The newest head for an anchor that has not been told of it and is due; whoever takes it tells it. No row where there is
-- nothing to tell.
create function tollbook.take_anchor(p_origin text, p_name text, p_every_ms int)
returns table (size bigint, note text)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  with known as (
    insert into log_anchor (origin, name, size, due_at) values (p_origin, p_name, -1, clock())
    on conflict do nothing
  ), newest as materialized (
    select head.size, head.note from log_head head where origin = p_origin order by head.size desc limit 1
  ), due as (
    update log_anchor set due_at = clock() + p_every_ms * interval '1 millisecond'
    from newest
    where origin = p_origin and name = p_name and due_at <= clock() and log_anchor.size < newest.size
    returning 1
  )
  select newest.size, newest.note from newest where exists (select from due)
$$;

create function tollbook.note_anchor(p_origin text, p_name text, p_size bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  update log_anchor set size = greatest(size, p_size) where origin = p_origin and name = p_name
$$;

grant select on tollbook.log_tree, tollbook.log_tile, tollbook.log_head, tollbook.log_anchor to tollbook_writer;
revoke execute on function
  tollbook.extend_log(smallint, text, bigint, bigint, bytea, bytea, text, json),
  tollbook.take_anchor(text, text, int), tollbook.note_anchor(text, text, bigint) from public;
grant execute on function
  tollbook.extend_log(smallint, text, bigint, bigint, bytea, bytea, text, json),
  tollbook.take_anchor(text, text, int), tollbook.note_anchor(text, text, bigint) to tollbook_writer;
