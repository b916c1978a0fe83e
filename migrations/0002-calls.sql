-- Calls that runners execute: the outbox, what clients sent and runners answered, and how far triggers have called.

create table tollbook.call (
  call_id bigint generated always as identity primary key,
  service_id bigint not null,
  job_index bigint not null,
  created_at timestamptz not null,
  body_id uuid not null,
  stream text collate "C" not null,
  -- null for a call that a trigger made
  network text,
  asset text,
  symbol text,
  caller text,
  -- the payment of its stream that pays for it, and the claims, in hex, that its command made beside the payment's own
  payment text collate "C" not null,
  claims json,
  -- the span of the request that bought it, where requests are traced (W3C Trace Context): never in the ledger
  traceparent text,
  -- the last failure: its runner's words (never in the ledger), the reason that the ledger has, and the runner's name
  last_error text,
  last_reason text,
  last_runner text,
  -- What every call changes comes last, and its new versions find room on its page: then the log gets the change alone.
  -- pending: its settlement is unknown; watched: its payment failed but may still land, and it does not count as open;
  -- ready: may be leased; leased: with a runner; dead: waits for the operator
  status text collate "C" not null check (status in ('pending', 'watched', 'ready', 'leased', 'unpaid', 'dead')),
  lease_id uuid,
  attempt int not null default 0,
  failures int not null default 0,
  -- when it may be taken (again): for a leased or unpaid call, the end of its lease
  due_at timestamptz not null,
  -- The order of calls by key: calls of one key are delivered one after another, or a few at a time. Null where a call has no key.
  -- A hash of the job and what orders its calls.
  order_key bytea,
  -- how many calls of the key may be in delivery simultaneously
  key_limit smallint,
  -- which of these places the call has, from its turn on until it leaves the outbox
  key_slot smallint,
  -- its place in the order, given when it was enqueued
  key_turn bigint,
  -- whether it keeps its place as a dead letter
  keeps_key boolean not null default false,
  -- enqueued, and not its turn yet: no runner gets it
  waits boolean not null default false,
  -- what made the call; null for a paid one. The trigger's name in the configuration, and what it was triggered by
  trigger_kind text collate "C",
  trigger_name text collate "C",
  trigger_id text collate "C",
  -- after how many failed attempts a call no longer keeps the others of its key waiting; null: never
  key_failures int,
  -- how often a busy runner refused the call since it was last enqueued: none of these was a failed attempt
  refusals int not null default 0,
  -- what the runner of a paid call gets; null where a trigger made it: then it is `payment`
  idempotency_key text collate "C",
  -- when it was enqueued, the last time: its age counts from then
  enqueued_at timestamptz not null default now()
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
-- by job, so that a job's long queue, or one that may not be leased at this moment, is not read to find the others
create index call_ready on tollbook.call (service_id, waits, job_index, due_at) where status in ('ready', 'leased');
-- few rows, however many calls wait: whether a runner works for a service, and since when it does not deliver, is asked all the time
create index call_leased_by_job on tollbook.call (service_id, job_index, due_at) where status = 'leased';
-- calls that a busy runner did not take have failed no attempt, and are undelivered all the same
create index call_undelivered on tollbook.call (service_id, created_at)
  where status in ('ready', 'leased') and (failures > 0 or last_reason = 'status_503');
create index call_dead on tollbook.call (call_id) where status = 'dead';
-- by job and time, so that what is given up by policy is found without reading the dead letters that are kept
create index call_dead_by_job on tollbook.call (service_id, job_index, due_at) where status = 'dead';
create index call_unsettled on tollbook.call (status, due_at) where status in ('pending', 'watched', 'unpaid');
-- the oldest that waits and the oldest that a runner has are found without reading the others
create index call_age on tollbook.call (status, enqueued_at) where status in ('ready', 'leased');
-- two calls never have one place: whatever else goes wrong, no two calls of an ordered key are with runners simultaneously
create unique index call_key_place on tollbook.call (order_key, key_slot) where key_slot is not null;
create index call_key_turn on tollbook.call (order_key, key_turn) where waits;

-- Written before the command that needs it is sent, so that the lane's lock never waits for a large body.
create table tollbook.call_body (
  body_id uuid primary key,
  content_type text,
  body bytea not null,
  created_at timestamptz not null
);
create index call_body_age on tollbook.call_body using brin (created_at);

create table tollbook.call_result (
  call_id bigint not null,
  attempt int not null,
  -- the lease that completed the call: the same completion, sent again, is recognised by it
  lease_id uuid not null,
  content_type text,
  body bytea not null,
  -- status and headers of the answer of a route
  head text,
  created_at timestamptz not null,
  primary key (call_id, attempt)
);
create index call_result_age on tollbook.call_result using brin (created_at);

-- The calls that a runner answered with 410, each once: several in a row pause it.
create table tollbook.runner_gone (
  runner text collate "C" not null,
  call_id bigint not null,
  at timestamptz not null,
  primary key (runner, call_id)
);

-- When a result was deleted: its receipt says so from then on. The ledger keeps the hash and the size of the result.
create table tollbook.deleted_result (
  call_id bigint not null,
  attempt int not null,
  deleted_at timestamptz not null,
  primary key (call_id, attempt)
);

-- Large results whose parts are in the result store, by the lease under which they came. A row is written before the first part, so that
-- every part can be found and deleted. A result counts once call_result has a row with the same lease.
create table tollbook.result_upload (
  call_id bigint not null,
  lease_id uuid not null,
  -- sent so far, at most
  parts int not null,
  -- of the whole, once its completion has named them
  bytes bigint,
  sha256 bytea,
  created_at timestamptz not null,
  primary key (call_id, lease_id)
);

-- What a runner last said of a call that it works on. Not an unlogged table: a gateway that reads from a standby could not read it.
create table tollbook.call_progress (
  call_id bigint primary key,
  lease_id uuid not null,
  fraction double precision,
  message text,
  reported_at timestamptz not null
);

-- Where clients want to be called once the end of a paid call is known. The URL is a client's, and never in the ledger: its event
-- `settlement_started` has it as a part of the hash `binding`, which names the request that the payment pays for.
create table tollbook.callback (
  -- as tollbook.stream_key writes it
  stream bytea not null,
  binding bytea not null,
  url text not null,
  -- an address in lower case: customers share a gateway's simultaneous requests
  payer text collate "C" not null,
  created_at timestamptz not null,
  -- the newest event that may be the end, and the newest one that the client was told of, or need not be told of
  seq bigint,
  told_seq bigint not null default 0,
  -- when that event was seen: the tries end some time after it
  seen_at timestamptz,
  -- when it is sent (again); null where there is nothing to send
  due_at timestamptz,
  tries int not null default 0,
  -- of the last message
  outcome text collate "C" check (outcome in ('delivered', 'given_up')),
  outcome_at timestamptz,
  last_failure text,
  primary key (stream, binding)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index callback_due on tollbook.callback (tries, due_at) where due_at is not null;
create index callback_created on tollbook.callback (created_at);
