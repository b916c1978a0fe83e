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
  -- those of the open calls that a trigger made: they have a separate limit
  triggered_calls bigint not null default 0,
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
-- flusher's id is kept: a reader of this table cannot send batches in its name.
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

-- What may be used once: a payment's authorization, a payer's id for it, a transfer's log entry, a spend and its request, a firing.
-- Never partitioned by time: a unique index must cover every row, and consumed nonces are never deleted.
-- Hashes alone, which src/ledger/store/claim-key.ts makes: the values are in the events, and spelled out here they would take four
-- times the space for ever.
create table tollbook.claim (
  key bytea primary key,
  -- what distinguishes a holder that repeats its claim from another claimant
  binding bytea not null,
  -- as tollbook.stream_key writes it
  stream bytea not null
);

-- The nonces that callers have used, each once for a job: not as claims, so that an auditor can list them. The row is written with the
-- payment's first event and deleted once its payment can never land. A nonce is free text of its caller, which may name a person: so
-- its hash is kept, as the events have it. A caller who knows a nonce can look it up.
create table tollbook.caller_nonce (
  caller text collate "C" not null,
  service_id bigint not null,
  job_index bigint not null,
  -- 0x and the SHA-256 in hex
  nonce_sha256 text collate "C" not null,
  -- the quote of the payment that has used it
  stream text collate "C" not null,
  used_at timestamptz not null,
  primary key (caller, service_id, job_index, nonce_sha256)
);

-- Requests with a payment that were refused, by a hash of what a copy of them has in common. A client signs another payment after such an
-- answer: so a copy of the request that is started later, by any gateway, loses. For ten minutes, in which every copy has arrived. The
-- append alone writes here, and only inserts, so that it waits for no pruning.
create table tollbook.refused_request (
  key bytea not null,
  refused_at timestamptz not null,
  primary key (key, refused_at)
);
create index refused_request_age on tollbook.refused_request (refused_at);

-- Keys that every gateway of this database shares and that never enter the ledger: of list cursors, and of receipt tokens where the
-- configuration names no key. The ledger's id, by which quotes of another ledger are refused, is not secret.
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

-- Work that the background workers take from the events.

-- How far each reader of the ledger has come.
create table tollbook.ledger_cursor (
  name text collate "C" primary key,
  seq bigint not null
);
insert into tollbook.ledger_cursor values ('follow_up', 0), ('top_up_reversal', 0), ('payout', 0), ('callback', 0);

-- What a worker still has to do because of an event. confirm: check a settlement on the chain until it is final;
-- resolve: a settlement that failed while a runner has its call; alert: tell the operator; reverse_top_up: reverse the credit
-- that a top-up bought, whose settlement failed after its call left the queue or whose payment was refunded; unreadable: tell
-- the operator about an event that a worker could not read and passed over.
create table tollbook.follow_up (
  seq bigint not null,
  created_at timestamptz not null,
  topic text collate "C" not null check (topic in ('confirm', 'resolve', 'alert', 'reverse_top_up', 'unreadable')),
  network text collate "C" not null,
  -- the block that includes the settlement; null while it was not found on the chain. The rest is in the event.
  block_number numeric,
  -- the chain's head when a settlement without a block was first searched for
  first_search_block numeric,
  -- what changes comes last, and its new version finds room on its page: then the log gets the change alone
  tries int not null default 0,
  due_at timestamptz not null,
  -- When a follow-up that was taken may be taken again; null before. Most end in their first try: it changes this column alone, which no
  -- index has, so that the new version stays on its page and no index gets an entry for it.
  retry_at timestamptz,
  primary key (topic, seq)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
create index follow_up_in_block on tollbook.follow_up (network, block_number) where block_number is not null;
create index follow_up_due on tollbook.follow_up (topic, due_at) where block_number is null;

-- What workers do. A round is done by one process at a time, such as asking for a rate or reading on from a cursor: its row is due again
-- after it, and keeps in its payload what it has found. A message is sent until it was taken: then its row is deleted.
create table tollbook.task (
  task_id bigint generated always as identity primary key,
  kind text collate "C" not null check (kind in ('alert_message', 'budget_message', 'chain_trigger', 'listing', 'prune', 'rate', 'schedule')),
  -- the rows of a kind that share one thing: the configurations of one token, the messages for one receiver
  queue text collate "C" not null,
  key text collate "C" not null,
  created_at timestamptz not null,
  -- when a round ended without an error last; where none has, when the row was made
  ok_at timestamptz not null,
  error text collate "C",
  payload json not null,
  -- how often it was taken: the fencing token of the process that has the round
  takes int not null default 0,
  taken_at timestamptz,
  -- when it may be taken (again)
  due_at timestamptz not null,
  unique (kind, queue, key)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);

-- The round in which rows are pruned whose life has ended: its payload has the number that the sums of prune_sum are counted under.
insert into tollbook.task (kind, queue, key, created_at, ok_at, payload, due_at)
  values ('prune', '', '', '-infinity', '-infinity', '{"round":1}', '-infinity');

-- The conditions that the operator is alerted about: one row for a kind and its subject, whichever processes report it.
create table tollbook.alert (
  kind text collate "C" not null,
  subject text collate "C" not null,
  is_firing boolean not null,
  since timestamptz not null,
  -- the last report; a condition that no process reports any more is resolved
  seen_at timestamptz not null,
  -- when the last message about it was written
  told_at timestamptz not null,
  text text not null,
  details json not null,
  primary key (kind, subject)
);

-- The process that alerts the operator when the database is unreachable: the last one that held this while it was not.
create table tollbook.alert_sender (
  is_only boolean primary key default true check (is_only),
  process_id uuid,
  until timestamptz not null
);
insert into tollbook.alert_sender values (true, null, '-infinity');

-- The processes that run the workers. Without one, nothing here is done: gateways say so.
create table tollbook.worker_process (
  process_id uuid primary key,
  heartbeat_at timestamptz not null
);

-- One row of each gateway, written every second: a gateway that cannot write it is not ready.
create table tollbook.gateway_process (
  process_id uuid primary key,
  heartbeat_at timestamptz not null
);

-- How many events of each kind strangers may still leave in the ledger, over all gateways: refilled by time, as they are taken.
create table tollbook.event_allowance (
  kind text collate "C" primary key,
  available float8 not null,
  filled_at timestamptz not null
);
insert into tollbook.event_allowance
  values ('quote', 0, 'epoch'), ('pricing_quote', 0, 'epoch'), ('rejected_payment', 0, 'epoch'), ('refused_sign_in', 0, 'epoch'),
    ('session', 0, 'epoch'), ('customer_session', 0, 'epoch'), ('key', 0, 'epoch'), ('chat_refusal', 0, 'epoch'), ('customer_chat_refusal', 0, 'epoch');

-- How many rows of each kind a round has deleted, and up to which time, until an event says so.
create table tollbook.prune_sum (
  round bigint not null,
  kind text collate "C" not null,
  count bigint not null,
  before timestamptz not null,
  primary key (round, kind)
);
