-- Tables that only grow.
create or replace function tollbook.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the ledger is append-only: % on % refused', tg_op, tg_table_name using errcode = 'restrict_violation';
end $$;

create or replace trigger event_is_immutable before update or delete or truncate on tollbook.event
  for each statement execute function tollbook.refuse_change();
create or replace trigger log_head_is_immutable before update or delete or truncate on tollbook.log_head
  for each statement execute function tollbook.refuse_change();
create or replace trigger reconciliation_is_immutable before update or delete or truncate on tollbook.reconciliation
  for each statement execute function tollbook.refuse_change();
