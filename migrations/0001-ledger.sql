-- The ledger: one lane of events in commit order, the claims they hold, the calls they release.
-- Everything here works on PostgreSQL 15 and newer.
-- the migrator keeps its own tables here and may have made it already
create schema if not exists tollbook;

-- The only clock that decides about quotes, expiries and leases. Test databases replace it to move time.
create function tollbook.clock() returns timestamptz language sql volatile as 'select clock_timestamp()';

-- The head of a lane. Whoever holds this row's lock appends; nobody holds it across a round trip.
create table tollbook.lane (
  lane_id smallint primary key,
  seq bigint not null,
  at timestamptz not null,
  -- calls that are held, ready or leased: what the outbox limit is compared with, without counting rows
  open_calls bigint not null
) with (fillfactor = 10);
insert into tollbook.lane values (1, 0, '-infinity', 0);

-- Exact by construction: moved in the transaction of the events they count, under the lane's lock.
create table tollbook.lane_counter (
  lane_id smallint not null references tollbook.lane,
  type text not null,
  count bigint not null,
  primary key (lane_id, type)
) with (fillfactor = 10);

-- The last answer each flusher was given: a batch sent twice over a broken connection is done once.
create table tollbook.lane_batch (
  flusher_id uuid primary key,
  batch_no bigint not null,
  answer json not null,
  at timestamptz not null
) with (fillfactor = 50);

-- leaf is the event: canonical JSON (RFC 8785), the bytes the Merkle tree will hash. The other columns only find it.
create table tollbook.event (
  lane_id smallint not null,
  seq bigint not null,
  version int not null,
  -- no counted repetition: `{1,128}` becomes an automaton that took a third of every append
  stream text collate "C" not null check (octet_length(stream) between 1 and 128 and stream !~ '[^A-Za-z0-9:_.-]'),
  type text collate "C" not null check (octet_length(type) between 1 and 64 and type !~ '[^a-z_]'),
  at timestamptz not null,
  leaf bytea not null,
  primary key (lane_id, seq),
  unique (stream, version)
);

-- for whoever reads by time: costs the lane nothing
create index event_at on tollbook.event using brin (at);

create function tollbook.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the ledger is append-only: % on % refused', tg_op, tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger event_is_immutable before update or delete or truncate on tollbook.event
  for each statement execute function tollbook.refuse_change();

-- What may be used once: a payment's authorization, a quote, a caller's nonce, a transfer's log entry.
-- Never partitioned by time: a unique index must see every row, and consumed nonces are kept for ever.
create table tollbook.claim (
  kind text collate "C" not null,
  owner text collate "C" not null,
  scope text collate "C" not null,
  key text collate "C" not null,
  binding text collate "C" not null,
  stream text collate "C" not null,
  primary key (kind, owner, scope, key)
);

create table tollbook.call (
  call_id bigint generated always as identity primary key,
  stream text collate "C" not null,
  service_id bigint not null,
  job_index bigint not null,
  -- held: paid for perhaps; ready: may be leased; leased: at a runner; dead: waits for the operator
  status text collate "C" not null check (status in ('held', 'ready', 'leased', 'dead')),
  body_id uuid not null,
  network text not null,
  symbol text not null,
  caller text,
  attempt int not null default 0,
  failures int not null default 0,
  lease_id uuid,
  -- what a runner said of its last failure: for the operator, never in the ledger
  last_error text,
  -- when it may be taken (again): for a leased call, the end of its lease
  due_at timestamptz not null,
  created_at timestamptz not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
create index call_due on tollbook.call (service_id, due_at) where status in ('ready', 'leased');
create index call_dead on tollbook.call (call_id) where status = 'dead';

-- Written before the lane is asked, so that its lock never waits for a large body.
create table tollbook.call_body (
  body_id uuid primary key,
  content_type text,
  body bytea not null,
  created_at timestamptz not null default tollbook.clock()
);
create index call_body_age on tollbook.call_body using brin (created_at);

create table tollbook.call_result (
  call_id bigint not null,
  attempt int not null,
  -- who completed it: the same completion, sent again, is recognised by it
  lease_id uuid not null,
  content_type text,
  body bytea not null,
  created_at timestamptz not null default tollbook.clock(),
  primary key (call_id, attempt)
);

-- Keys that every gateway of this database shares and that never enter the ledger.
create table tollbook.secret (
  name text primary key,
  value bytea not null
);
insert into tollbook.secret
  select 'receipt_token', sha256(convert_to(string_agg(gen_random_uuid()::text, ''), 'UTF8')) from generate_series(1, 4);
