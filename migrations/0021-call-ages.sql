-- outside a transaction
-- When a call was enqueued, the last time: its age counts from then. Calls that wait during the upgrade count from the upgrade.
alter table tollbook.call add column if not exists enqueued_at timestamptz not null default now();

-- the oldest that waits and the oldest that a runner has are found without reading the others
drop index concurrently if exists tollbook.call_age;
create index concurrently call_age on tollbook.call (status, enqueued_at) where status in ('ready', 'leased');
