-- Where clients want to be called once the end of a paid call is known. The URL is a client's, and never in the ledger: its event
-- `settlement_started` has it as a part of the hash `binding`, which names the request that the payment pays for.
create table tollbook.callback (
  -- as tollbook.stream_key writes it
  stream bytea not null,
  binding bytea not null,
  url text not null,
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
insert into tollbook.ledger_cursor select 'callback', coalesce(max(seq), 0) from tollbook.event where lane_id = 1;
