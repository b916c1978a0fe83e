-- The root of a tree with this right edge: the roots of its perfect subtrees, the widest first.
create or replace function tollbook.root_of_edge(p_edge bytea) returns bytea
language plpgsql immutable set search_path = tollbook, pg_temp as $$
declare
  left_over int := octet_length(p_edge) - 32;
  root bytea;
begin
  if left_over < 0 then return sha256(''); end if;
  root := substr(p_edge, left_over + 1, 32);
  while left_over > 0 loop
    left_over := left_over - 32;
    root := sha256('\x01'::bytea || substr(p_edge, left_over + 1, 32) || root);
  end loop;
  return root;
end $$;

-- Adds the hashes of the events after p_from up to p_size to the tiles, level by level, and returns the right edge of that
-- tree; p_edge is the one of the tree of p_from.
create or replace function tollbook.grow_tree(p_lane smallint, p_from bigint, p_size bigint, p_edge bytea) returns bytea
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  height int := 0;
  -- the hashes of this height that are new, and the index of the first
  added bytea;
  first bigint;
  count bigint;
  edge_left int := octet_length(p_edge);
  new_edge bytea := '';
begin
  select coalesce(string_agg(leaf.hash, '' order by leaf.seq), '') into added from (
    select seq, sha256('\x00'::bytea || leaf(event)) as hash from event
    where lane_id = p_lane and seq > p_from and seq <= p_size) leaf;
  if octet_length(added) <> 32 * (p_size - p_from) then
    raise exception 'of the events % to % some are missing', p_from + 1, p_size using errcode = 'data_corrupted';
  end if;
  while p_size >> height > 0 loop
    first := p_from >> height;
    if height % 8 = 0 then perform add_to_tiles(p_lane, height / 8, first, added); end if;
    -- an odd number of old hashes: the last one, which the edge holds, is the left half of the first pair
    if first % 2 = 1 then
      edge_left := edge_left - 32;
      added := substr(p_edge, edge_left + 1, 32) || added;
    end if;
    count := octet_length(added) / 32;
    if count % 2 = 1 then new_edge := substr(added, (32 * count - 31)::int, 32) || new_edge; end if;
    select coalesce(string_agg(sha256('\x01'::bytea || substr(added, 64 * pair + 1, 64)), '' order by pair), '') into added
      from generate_series(0, (count / 2)::int - 1) as pair;
    height := height + 1;
  end loop;
  return new_edge;
end $$;

-- Appends the hashes from index p_first on to their level's tiles.
create or replace function tollbook.add_to_tiles(p_lane smallint, p_level int, p_first bigint, p_hashes bytea) returns void
language plpgsql volatile set search_path = tollbook, pg_temp as $$
declare
  -- how many belong into the tile that is begun
  begun int := case when p_first % 256 > 0 then least(256 - p_first % 256, octet_length(p_hashes) / 32) else 0 end;
begin
  if begun > 0 then
    update log_tile set hashes = hashes || substr(p_hashes, 1, 32 * begun)
      where lane_id = p_lane and level = p_level and tile = p_first / 256 and octet_length(hashes) = 32 * (p_first % 256);
    if not found then
      raise exception 'the tiles do not end where the tree does' using errcode = 'data_corrupted';
    end if;
  end if;
  insert into log_tile (lane_id, level, tile, hashes)
  select p_lane, p_level, (p_first + begun) / 256 + n, substr(p_hashes, 32 * begun + 8192 * n + 1, 8192)
  from generate_series(0, (octet_length(p_hashes) / 32 - begun + 255) / 256 - 1) as n;
end $$;

-- Extends the tree from p_from to p_size leaves and records its head. A compare-and-swap on the size: false, with nothing
-- changed, where another sealer was first, or where the log has another generation, and so another name: a gateway that was
-- running while the ledger was recovered must not sign under the old name. The tree is computed from the events here once
-- more, so that a head with another root is refused; only its signature is not checked.
create or replace function tollbook.extend_log(p_lane smallint, p_origin text, p_generation int, p_from bigint, p_size bigint,
  p_root bytea, p_note text) returns boolean
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  tree log_tree;
  new_edge bytea;
begin
  select * into strict tree from log_tree where lane_id = p_lane for update;
  if tree.size is distinct from p_from then return false; end if;
  -- what comes after lost events must not be signed under the name that has signed those
  if exists (select from lane where lane_id = p_lane and halt_reason is not null) then return false; end if;
  if p_generation is distinct from 1 + (
    select count(*) from event where stream >= stream_key('recovery:') and stream < stream_key('recovery;') and type = 'ledger_recovered'
  ) then return false; end if;
  if exists (select from log_head where origin = p_origin and size >= p_size) then return false; end if;
  if (p_size between p_from and (select seq from lane where lane_id = p_lane)) is not true then
    raise exception 'no tree of % leaves can follow one of %', p_size, p_from using errcode = 'check_violation';
  end if;
  new_edge := grow_tree(p_lane, p_from, p_size, tree.edge);
  if p_root is distinct from root_of_edge(new_edge) then
    raise exception 'the tree of % events has another root', p_size using errcode = 'check_violation';
  end if;
  if starts_with(p_note, format(E'%s\n%s\n%s\n\n— %1$s ', p_origin, p_size, encode(p_root, 'base64'))) is not true then
    raise exception 'the note does not name the tree of % events', p_size using errcode = 'check_violation';
  end if;
  update log_tree set size = p_size, edge = new_edge where lane_id = p_lane;
  insert into log_head (origin, size, lane_id, root, note, at)
  values (p_origin, p_size, p_lane, p_root, p_note, clock());
  return true;
end $$;

grant execute on function tollbook.extend_log to tollbook_writer;
