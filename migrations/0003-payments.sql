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
