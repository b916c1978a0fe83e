-- What reconciling a period with the chain has found. Kept as the bytes that were made, and never changed.
create table tollbook.reconciliation (
  id bigint generated always as identity primary key,
  sha256 bytea not null unique,
  period_from timestamptz not null,
  period_to timestamptz not null,
  size bigint not null,
  root text collate "C" not null,
  result text collate "C" not null check (result in ('clean', 'open_items', 'breaks')),
  breaks int not null,
  open_items int not null,
  report text collate "C" not null,
  at timestamptz not null
);
create trigger reconciliation_is_immutable before update or delete or truncate on tollbook.reconciliation
  for each statement execute function tollbook.refuse_change();

-- Keeps a report and returns its number; the same report again is the one that is there.
create function tollbook.record_reconciliation(p_report text) returns bigint
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  told json := p_report::json;
  hash bytea := sha256(convert_to(p_report, 'UTF8'));
  kept bigint;
begin
  insert into reconciliation (sha256, period_from, period_to, size, root, result, breaks, open_items, report, at)
  values (hash, (told->'period'->>'from')::timestamptz, (told->'period'->>'to')::timestamptz,
    (told->'ledger'->>'size')::bigint, told->'ledger'->>'root', told->>'result', (told->>'breaks')::int,
    (told->>'open_items')::int, p_report, clock())
  on conflict (sha256) do nothing
  returning id into kept;
  return coalesce(kept, (select id from reconciliation where reconciliation.sha256 = hash));
end $$;

grant select on tollbook.reconciliation to tollbook_writer;
revoke execute on function tollbook.record_reconciliation(text) from public;
grant execute on function tollbook.record_reconciliation(text) to tollbook_writer;
