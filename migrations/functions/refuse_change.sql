-- Tables that only grow.
create or replace function tollbook.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the ledger is append-only: % on % refused', tg_op, tg_table_name using errcode = 'restrict_violation';
end $$;

create or replace trigger event_is_immutable before update or delete or truncate on tollbook.event
  for each statement execute function tollbook.refuse_change();
create or replace trigger log_head_is_immutable before update or truncate on tollbook.log_head
  for each statement execute function tollbook.refuse_change();

-- Heads may be deleted that nothing names any more: after 30 days those that are not the newest under their name, that no
-- anchor has received and no report is about. Proofs between any two sizes are made from the tiles.
create or replace function tollbook.is_head_needed(p_origin text, p_size bigint, p_at timestamptz) returns boolean
language sql volatile as $$
  select p_at >= tollbook.clock() - interval '30 days'
    or not exists (select from tollbook.log_head newer where newer.origin = p_origin and newer.size > p_size)
    or exists (select from tollbook.log_anchored_head anchored where anchored.origin = p_origin and anchored.size = p_size)
    or exists (select from tollbook.reconciliation where reconciliation.size = p_size)
$$;

create or replace function tollbook.refuse_needed_head() returns trigger language plpgsql as $$
begin
  if tollbook.is_head_needed(old.origin, old.size, old.at) then
    raise exception 'the ledger is append-only: the head of % events is needed', old.size using errcode = 'restrict_violation';
  end if;
  return old;
end $$;
create or replace trigger needed_log_head_stays before delete on tollbook.log_head
  for each row execute function tollbook.refuse_needed_head();
create or replace trigger log_anchored_head_is_immutable before update or delete or truncate on tollbook.log_anchored_head
  for each statement execute function tollbook.refuse_change();
create or replace trigger reconciliation_is_immutable before update or delete or truncate on tollbook.reconciliation
  for each statement execute function tollbook.refuse_change();
