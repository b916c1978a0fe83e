-- Work that the background workers take from the events.

-- How far each reader of the ledger has come.
create table tollbook.ledger_cursor (
  name text collate "C" primary key,
  seq bigint not null
);
insert into tollbook.ledger_cursor values ('follow_up', 0), ('top_up_reversal', 0), ('payout', 0);

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
  primary key (topic, seq)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
create index follow_up_in_block on tollbook.follow_up (network, block_number) where block_number is not null;
create index follow_up_due on tollbook.follow_up (topic, due_at) where block_number is null;

-- The calls that a runner answered with 410, each once: several in a row pause it.
create table tollbook.runner_gone (
  runner text collate "C" not null,
  call_id bigint not null,
  at timestamptz not null,
  primary key (runner, call_id)
);

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

-- What has still to be sent to each receiver of alerts: the newest state of a kind and its subject alone.
create table tollbook.alert_message (
  message_id bigint generated always as identity primary key,
  receiver text collate "C" not null,
  kind text collate "C" not null,
  subject text collate "C" not null,
  status text collate "C" not null check (status in ('firing', 'resolved')),
  text text not null,
  details json not null,
  since timestamptz not null,
  -- the id that a receiver recognises a repeated message by; null: made of the kind and message_id
  id text collate "C",
  tries int not null default 0,
  created_at timestamptz not null,
  due_at timestamptz not null,
  unique (receiver, kind, subject)
);

-- The process that tells the operator when the database is away: the last one that held this while it was not.
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

-- Spends that an operator has earned and not yet been paid. The events define them; here is when each is tried next.
create table tollbook.payout (
  -- of the spend
  stream text collate "C" primary key,
  -- failed: it can no longer be paid out; the row stays so that the operator sees it
  status text collate "C" not null default 'open' check (status in ('open', 'failed')),
  attempts int not null default 0,
  -- the error code of the last failed attempt
  last_reason text,
  due_at timestamptz not null,
  created_at timestamptz not null,
  -- Unix seconds: until then it can be paid out
  expiry numeric,
  -- the payout transaction, where one was sent or found: the spend stays due until its block is final
  transaction text collate "C",
  -- how often that transaction was checked
  checks int not null default 0
) with (autovacuum_vacuum_scale_factor = 0.01);
create index payout_new on tollbook.payout (expiry nulls first) where status = 'open' and transaction is null;
create index payout_sent on tollbook.payout (due_at) where status = 'open' and transaction is not null;

-- Spends whose completion starts before they land: the exposure to one prepaid account, over all processes together.
create table tollbook.spend_exposure (
  -- of the spend
  stream text collate "C" primary key,
  -- the chain and its prepaid contract, and the account there
  scope text collate "C" not null,
  commitment text collate "C" not null,
  nonce numeric not null,
  amount numeric not null,
  -- failed: it did not land, so its account gets no exposure any more
  status text collate "C" not null default 'open' check (status in ('open', 'failed')),
  created_at timestamptz not null
);
create index spend_exposure_account on tollbook.spend_exposure (commitment, scope);

-- What each configuration offers to version 1 clients, whose payments name no quote. Every gateway that offers a list extends it
-- every few seconds; its prices can be paid until the last quote with them has expired.
create table tollbook.price_list (
  -- the hash of its prices
  list_id bytea primary key,
  -- when a gateway said last that it offers them
  offered_at timestamptz not null,
  valid_until timestamptz not null
) with (fillfactor = 50);
create table tollbook.price_window (
  list_id bytea not null references tollbook.price_list on delete cascade,
  service_id bigint not null,
  job_index bigint not null,
  network text collate "C" not null,
  transfer_method text collate "C" not null,
  asset text collate "C" not null,
  pay_to text collate "C" not null,
  amount numeric not null,
  price_wei numeric not null,
  -- what it buys, where the job sells credit
  credit_micros numeric,
  -- in the order in which a payment finds its price
  primary key (service_id, job_index, network, asset, transfer_method, pay_to, amount, list_id)
);
create index price_window_list on tollbook.price_window (list_id, service_id, job_index);

-- The rate of each token as its sources, or the operator, said it last. Every gateway reads it; one at a time asks.
create table tollbook.rate_round (
  network text collate "C" not null,
  asset text collate "C" not null,
  -- the hash of what a configuration says of the rate: each configuration has rounds of its own
  terms bytea not null,
  -- how many rounds were begun: the fencing token of the gateway that asks
  round bigint not null,
  begun_at timestamptz not null,
  -- when the next round may begin
  due_at timestamptz not null,
  -- tokens for a native unit as a decimal; null before a round has found one
  rate text collate "C",
  -- the oldest of its sources; of a fixed rate when it was seen first
  observed_at timestamptz,
  valid_until timestamptz,
  -- what the ledger's last event says is in force: null for no rate
  recorded text collate "C",
  -- of the last round that ended: why it found no rate, and what each source said
  problem text collate "C",
  answers json not null,
  primary key (network, asset, terms)
) with (fillfactor = 50);

-- What the looks at each discovery service have shown of our own listings. Every gateway reads it; one at a time looks.
create table tollbook.listing_look (
  url text collate "C" primary key,
  -- how many looks were begun: the fencing token of the gateway that looks
  look bigint not null,
  begun_at timestamptz not null,
  -- when the next look may begin
  due_at timestamptz not null,
  state json not null
) with (fillfactor = 50);

-- How many events of each kind strangers may still leave in the ledger, over all gateways: refilled by time, as they are taken.
create table tollbook.event_allowance (
  kind text collate "C" primary key,
  available float8 not null,
  filled_at timestamptz not null
);
insert into tollbook.event_allowance
  values ('quote', 0, 'epoch'), ('pricing_quote', 0, 'epoch'), ('rejected_payment', 0, 'epoch');

-- The round in which rows are pruned whose life has ended, and when a gateway begins the next one.
create table tollbook.prune_round (
  is_only boolean primary key default true check (is_only),
  round bigint not null,
  due_at timestamptz not null
);
insert into tollbook.prune_round values (true, 1, '-infinity');

-- How many rows of each kind a round has deleted, and up to which time, until an event says so.
create table tollbook.prune_sum (
  round bigint not null,
  kind text collate "C" not null,
  count bigint not null,
  before timestamptz not null,
  primary key (round, kind)
);
