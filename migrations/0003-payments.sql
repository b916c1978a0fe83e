-- What is offered, and at which rate.

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
