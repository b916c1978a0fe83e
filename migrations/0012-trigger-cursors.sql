-- How far each schedule has fired. Each configuration of a trigger has a row of its own.
create table tollbook.cron_cursor (
  trigger_name text collate "C" not null,
  -- the hash of the schedule and its time zone
  terms bytea not null,
  -- every time up to here has fired, or was skipped
  handled_until timestamptz not null,
  -- when a gateway followed this schedule last
  seen_at timestamptz not null,
  primary key (trigger_name, terms)
) with (fillfactor = 50);

-- How far each trigger has read its chain. Every gateway reads it; one at a time reads the chain.
create table tollbook.chain_cursor (
  trigger_name text collate "C" not null,
  network text collate "C" not null,
  -- the hash of what a configuration says of the trigger
  terms bytea not null,
  -- how many looks were begun: the fencing token of the gateway that looks
  look bigint not null,
  begun_at timestamptz not null,
  -- when the next look may begin
  due_at timestamptz not null,
  -- the block up to which the calls are in the ledger, then older ones; null before the first
  reached json,
  -- the newest block that counts, at the last look that ended well
  head numeric,
  -- when the last look ended well
  ok_at timestamptz not null,
  -- why the last look did not end well
  problem text collate "C",
  primary key (trigger_name, network, terms)
) with (fillfactor = 50);
