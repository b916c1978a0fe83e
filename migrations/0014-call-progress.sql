-- What a runner last said of a call that it works on. Not an unlogged table: a gateway that reads from a standby could not read it.
create table tollbook.call_progress (
  call_id bigint primary key,
  lease_id uuid not null,
  fraction double precision,
  message text,
  reported_at timestamptz not null
);
