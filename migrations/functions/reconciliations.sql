-- Keeps a report and returns its id; the same report again returns the same id.
create or replace function tollbook.record_reconciliation(p_report text) returns bigint
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  content json := p_report::json;
  hash bytea := sha256(convert_to(p_report, 'UTF8'));
  kept bigint;
begin
  insert into reconciliation (sha256, period_from, period_to, size, root, result, breaks, open_items, report, at)
  values (hash, (content->'period'->>'from')::timestamptz, (content->'period'->>'to')::timestamptz,
    (content->'ledger'->>'size')::bigint, content->'ledger'->>'root', content->>'result', (content->>'breaks')::int,
    (content->>'open_items')::int, p_report, clock())
  on conflict (sha256) do nothing
  returning id into kept;
  return coalesce(kept, (select id from reconciliation where reconciliation.sha256 = hash));
end $$;

grant execute on function tollbook.record_reconciliation to tollbook_writer;
