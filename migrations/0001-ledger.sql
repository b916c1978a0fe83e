-- The ledger: one lane of events in commit order, the claims they made, the calls they enqueued. PostgreSQL 15 or newer.
-- Functions, with their grants and the triggers that run them, are in functions/. `tollbook migrate` has created the schema.

-- The text of each file in functions/ that was applied last.
create table tollbook.function_file (
  name text collate "C" primary key,
  sha256 bytea not null
);

-- A process appends while it holds the lock of its lane's row here, which never spans a round trip.
create table tollbook.lane_lock (
  lane_id smallint primary key
);
insert into tollbook.lane_lock values (1);

-- Each append inserts rows into the next three tables, under a higher number. An update would leave versions that every later
-- append has to pass while a snapshot (a dump) keeps them; the highest number is found at the end of the index, whatever is left
-- of the others. The append deletes the lane's old row; the rest is swept (tollbook.sweep_batches).

-- The head of a lane.
create table tollbook.lane (
  lane_id smallint not null,
  batch bigint not null,
  seq bigint not null,
  at timestamptz not null,
  -- calls that are neither watched nor dead: compared with the outbox limit without counting rows
  open_calls bigint not null,
  -- those of them that are pending or unpaid: their money is not proven
  unsettled_calls bigint not null,
  -- set while the ledger is known to have lost events: nothing is appended
  halt_reason text,
  halt_known_seq bigint,
  halt_found_seq bigint,
  halted_at timestamptz,
  primary key (lane_id, batch)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
insert into tollbook.lane values (1, 0, 0, '-infinity', 0, 0);

-- Exact: written in the transaction of the events that a batch counts. A type's count is the sum of its rows.
create table tollbook.lane_counter (
  lane_id smallint not null,
  type text not null,
  -- of the lane
  batch bigint not null,
  count bigint not null,
  primary key (lane_id, type, batch)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The last answer to each flusher: a batch that is sent again after a lost connection is applied once. Only the hash of a
-- flusher's id is kept: who reads this table cannot send batches in its name.
create table tollbook.lane_batch (
  sender_hash bytea not null,
  batch_no bigint not null,
  content_hash bytea not null,
  answer json not null,
  at timestamptz not null,
  primary key (sender_hash, batch_no)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- An event's leaf, the bytes that the Merkle tree hashes, is canonical JSON (RFC 8785) of all columns: tollbook.leaf puts it
-- together. Nothing is stored twice.
create table tollbook.event (
  -- in an order that needs no padding
  seq bigint not null,
  at timestamptz not null,
  version int not null,
  lane_id smallint not null,
  -- as tollbook.stream_key writes it. No counted repetition: `{1,128}` becomes an automaton that took a third of every append
  stream bytea not null check (octet_length(stream) = 32
    or octet_length(stream) between 1 and 128 and encode(stream, 'escape') !~ '[^A-Za-z0-9:_.-]'
    or octet_length(stream) = 33 and substr(stream, 33) = '\x00' and encode(substr(stream, 1, 32), 'escape') !~ '[^A-Za-z0-9:_.-]'),
  type text collate "C" not null check (octet_length(type) between 1 and 64 and type !~ '[^a-z_]'),
  -- canonical JSON
  data text collate "C" not null,
  primary key (lane_id, seq),
  unique (stream, version)
);
-- for readers by time: a BRIN index costs the lane nothing
create index event_at on tollbook.event using brin (at);

-- What may be used once: a payment's authorization, a quote, a caller's nonce, a transfer's log entry.
-- Never partitioned by time: a unique index must cover every row, and consumed nonces are never deleted.
-- Hashes alone, which src/store/claim-key.ts makes: the values are in the events, and spelled out here they would take four
-- times the space for ever.
create table tollbook.claim (
  key bytea primary key,
  -- what distinguishes a holder that repeats its claim from another claimant
  binding bytea not null,
  -- as tollbook.stream_key writes it
  stream bytea not null
);

create table tollbook.call (
  call_id bigint generated always as identity primary key,
  service_id bigint not null,
  job_index bigint not null,
  created_at timestamptz not null,
  body_id uuid not null,
  stream text collate "C" not null,
  network text not null,
  asset text not null,
  symbol text not null,
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
  due_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
create index call_due on tollbook.call (service_id, due_at) where status in ('ready', 'leased');
-- few rows, however many calls wait: whether a runner works for a service, and since when it does not deliver, is asked all the time
create index call_leased on tollbook.call (service_id, due_at) where status = 'leased';
create index call_failing on tollbook.call (service_id, created_at) where status in ('ready', 'leased') and failures > 0;
create index call_dead on tollbook.call (call_id) where status = 'dead';
create index call_unsettled on tollbook.call (status, due_at) where status in ('pending', 'watched', 'unpaid');

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
  created_at timestamptz not null,
  primary key (call_id, attempt)
);
create index call_result_age on tollbook.call_result using brin (created_at);

-- Keys that every gateway of this database shares and that never enter the ledger: of list cursors, and of receipt tokens where the
-- configuration names no key. The ledger's id, by which quotes of another ledger are refused, is no secret.
create table tollbook.secret (
  name text primary key,
  value bytea not null
);
insert into tollbook.secret
  select 'receipt_token', sha256(convert_to(string_agg(gen_random_uuid()::text, ''), 'UTF8')) from generate_series(1, 4);
insert into tollbook.secret values ('ledger_id', uuid_send(gen_random_uuid()));

-- What told this database from its copies when a gateway first started on it: one row. Events record every change.
create table tollbook.database_identity (
  is_only boolean primary key default true check (is_only),
  -- null where PostgreSQL refuses to tell it
  system_identifier text collate "C",
  oid bigint not null,
  timeline int,
  recorded_at timestamptz not null
);

-- Bearer tokens of operators and auditors: only their hashes, with their scopes.
create table tollbook.operator_token (
  token_id bigint generated always as identity primary key,
  name text not null check (name ~ '^[A-Za-z0-9._-]{1,64}$'),
  scopes text[] not null,
  -- the credit accounts that its scopes are limited to; null: all
  accounts text[],
  hash bytea not null unique,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz
);
