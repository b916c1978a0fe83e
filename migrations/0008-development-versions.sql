-- Before the first release the files before this one were edited in place, so a ledger of a development version lacks what they have got
-- since. This file adds it; in a new ledger it finds everything there and changes nothing. From here on no file is edited.
do $$ begin
  if to_regclass('tollbook.caller_nonce') is null or not exists (
    select from pg_attribute where attrelid = 'tollbook.account'::regclass and attname = 'recorded_at')
  then
    raise exception 'This ledger is of a development version before 2026-11-28 22:30 UTC, whose events this version does not read: nothing was changed. Its own version still works on it.';
  end if;
end $$;

alter table tollbook.call_result add column if not exists head text;

create table if not exists tollbook.refused_request (
  key bytea not null,
  refused_at timestamptz not null,
  primary key (key, refused_at)
);
create index if not exists refused_request_age on tollbook.refused_request (refused_at);

insert into tollbook.event_allowance
  values ('key', 0, 'epoch'), ('chat_refusal', 0, 'epoch'), ('customer_chat_refusal', 0, 'epoch')
  on conflict do nothing;

-- messages had separate tables
do $$ begin
  if to_regclass('tollbook.alert_message') is not null then
    alter table tollbook.task drop constraint task_kind_check, add constraint task_kind_check
      check (kind in ('alert_message', 'budget_message', 'chain_trigger', 'listing', 'prune', 'rate', 'schedule'));
    insert into tollbook.task (kind, queue, key, created_at, ok_at, due_at, takes, payload)
      select 'alert_message', receiver, json_build_array(kind, subject)::text, created_at, created_at, due_at, tries,
        json_build_object('kind', kind, 'subject', subject, 'status', status, 'text', text, 'details', details, 'since', since, 'id', id)
      from tollbook.alert_message order by message_id;
    insert into tollbook.task (kind, queue, key, created_at, ok_at, due_at, takes, payload)
      select 'budget_message', channel, gen_random_uuid()::text, created_at, created_at, due_at, tries,
        json_build_object('account_id', account_id, 'key_id', key_id, 'percent', percent, 'used', used, 'budget', budget,
          'budget_period', budget_period, 'budget_from', budget_from)
      from tollbook.budget_message order by message_id;
    drop table tollbook.alert_message, tollbook.budget_message;
  end if;
end $$;
