-- outside a transaction
-- The order of calls by key: calls of one key are delivered one after another, or a few at a time. Null where a call has no key.
alter table tollbook.call
  -- a hash of the job and what orders its calls
  add column if not exists order_key bytea,
  -- how many calls of the key may be in delivery at once
  add column if not exists key_limit smallint,
  -- which of these places the call has, from its turn on until it leaves the outbox
  add column if not exists key_slot smallint,
  -- its place in the order, given when it was enqueued
  add column if not exists key_turn bigint,
  -- whether it keeps its place as a dead letter
  add column if not exists keeps_key boolean not null default false,
  -- enqueued, and not its turn yet: no runner gets it
  add column if not exists waits boolean not null default false;

-- by job, so that a job's long queue, or one that may not be leased at this moment, is not read to find the others
drop index concurrently if exists tollbook.call_ready;
create index concurrently call_ready on tollbook.call (service_id, waits, job_index, due_at) where status in ('ready', 'leased');
drop index concurrently if exists tollbook.call_due;

-- few rows, however many calls wait
drop index concurrently if exists tollbook.call_leased_by_job;
create index concurrently call_leased_by_job on tollbook.call (service_id, job_index, due_at) where status = 'leased';
drop index concurrently if exists tollbook.call_leased;

-- calls that a busy runner did not take have failed no attempt, and are undelivered all the same
drop index concurrently if exists tollbook.call_undelivered;
create index concurrently call_undelivered on tollbook.call (service_id, created_at)
  where status in ('ready', 'leased') and (failures > 0 or last_reason = 'status_503');
drop index concurrently if exists tollbook.call_failing;

-- two calls never have one place: whatever else goes wrong, no two calls of an ordered key are with runners at once
drop index concurrently if exists tollbook.call_key_place;
create unique index concurrently call_key_place on tollbook.call (order_key, key_slot) where key_slot is not null;
drop index concurrently if exists tollbook.call_key_turn;
create index concurrently call_key_turn on tollbook.call (order_key, key_turn) where waits;
