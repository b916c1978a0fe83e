-- Read models for finance: derived from the events in their order, after the lane. A rebuild fills another generation
-- next to the active one and replaces it once it has caught up.
create table tollbook.projection (
  generation int primary key,
  seq bigint not null,
  is_active boolean not null,
  touched_at timestamptz not null
);
create unique index projection_active on tollbook.projection (is_active) where is_active;
insert into tollbook.projection values (1, 0, true, now());

-- A payment, identified by the event that started or recovered it, whose stream is its quote. A recovered payment has no job before
-- its payer names one. Addresses and transactions are their bytes, half of their text. In an order that needs no padding; what a
-- payment's usual life changes comes last, so that the log gets that alone where a new version stays on its page.
create table tollbook.payment (
  generation int not null,
  decimals int not null,
  seq bigint not null,
  at timestamptz not null,
  service_id bigint,
  job_index bigint,
  network text collate "C" not null,
  asset bytea not null,
  symbol text collate "C" not null,
  amount numeric not null,
  payer bytea not null,
  pay_to bytea not null,
  transaction bytea,
  -- which service issued its quote; null for a 402 answer, and where the quote is lost
  quote_source text collate "C",
  -- why its money is owed back, and since when
  refund_due_since timestamptz,
  -- of a refund that has not ended: also of a payment that was taken back since
  refund_started_at timestamptz,
  refund_due text collate "C",
  refunded_at timestamptz,
  refund_transaction bytea,
  call_id bigint,
  settled_at timestamptz,
  last_seq bigint not null,
  block_number numeric,
  state text collate "C" not null,
  -- how much of the payment was refunded
  refunded_amount numeric not null default 0,
  primary key (generation, seq)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- No index has a column that a payment's usual life changes, once it is completed: most updates stay on their page. The payments
-- of a time are found by first_payment_since.
-- of one payer, who may have few among many
create index payment_payer on tollbook.payment (generation, payer, seq);
-- of one job
create index payment_job on tollbook.payment (generation, service_id, job_index, seq);
-- of a state; nearly all are completed, so that those are found along the primary key
create index payment_state on tollbook.payment (generation, state, seq) where state <> 'completed';
create index payment_refund_due on tollbook.payment (generation, seq) where refund_due is not null;
create index payment_refund_started on tollbook.payment (generation, refund_started_at) where refund_started_at is not null;
-- a payment is found by its transaction, or by the beginning of one
create index payment_transaction on tollbook.payment (generation, transaction) where transaction is not null;
-- and by any part of it: the sixteen words of two bytes of each. It needs no extension
create index payment_transaction_words on tollbook.payment using gin ((array[
  get_byte(transaction, 0) * 256 + get_byte(transaction, 1), get_byte(transaction, 2) * 256 + get_byte(transaction, 3),
  get_byte(transaction, 4) * 256 + get_byte(transaction, 5), get_byte(transaction, 6) * 256 + get_byte(transaction, 7),
  get_byte(transaction, 8) * 256 + get_byte(transaction, 9), get_byte(transaction, 10) * 256 + get_byte(transaction, 11),
  get_byte(transaction, 12) * 256 + get_byte(transaction, 13), get_byte(transaction, 14) * 256 + get_byte(transaction, 15),
  get_byte(transaction, 16) * 256 + get_byte(transaction, 17), get_byte(transaction, 18) * 256 + get_byte(transaction, 19),
  get_byte(transaction, 20) * 256 + get_byte(transaction, 21), get_byte(transaction, 22) * 256 + get_byte(transaction, 23),
  get_byte(transaction, 24) * 256 + get_byte(transaction, 25), get_byte(transaction, 26) * 256 + get_byte(transaction, 27),
  get_byte(transaction, 28) * 256 + get_byte(transaction, 29), get_byte(transaction, 30) * 256 + get_byte(transaction, 31)]))
  with (gin_pending_list_limit = 512) where length(transaction) = 32;

-- Which tokens were ever taken, and to which addresses.
create table tollbook.payee (
  generation int not null,
  network text collate "C" not null,
  asset text collate "C" not null,
  pay_to text collate "C" not null,
  symbol text collate "C" not null,
  decimals int not null,
  primary key (generation, network, asset, pay_to)
);

-- A paid call, with the payment that paid for it.
create table tollbook.paid_call (
  generation int not null,
  attempts int not null,
  call_id bigint not null,
  seq bigint not null,
  service_id bigint not null,
  job_index bigint not null,
  enqueued_at timestamptz not null,
  ended_at timestamptz,
  status text collate "C" not null,
  primary key (generation, call_id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- of a status; completed ones are found along the primary key
create index paid_call_status on tollbook.paid_call (generation, status, call_id) where status <> 'completed';

-- What each job earned on each day (UTC) of settlement, by token, and the outcome of those calls.
create table tollbook.job_day (
  generation int not null,
  day date not null,
  service_id bigint not null,
  job_index bigint not null,
  network text collate "C" not null,
  asset text collate "C" not null,
  symbol text collate "C" not null,
  decimals int not null,
  payments bigint not null,
  amount numeric not null,
  completed bigint not null,
  dead_lettered bigint not null,
  refunded bigint not null default 0,
  refunded_amount numeric not null default 0,
  primary key (generation, day, service_id, job_index, network, asset)
) with (fillfactor = 50);

-- Each account's credit: sums over the events.
create table tollbook.account_credit (
  generation int not null,
  account_id bigint not null,
  -- null where the account was opened without one
  name text collate "C",
  balance bigint not null,
  held bigint not null,
  granted bigint not null,
  topped_up bigint not null,
  -- less what was returned
  captured bigint not null,
  expired bigint not null,
  last_seq bigint not null,
  primary key (generation, account_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
create index account_credit_name on tollbook.account_credit (generation, name);

-- What each account's completions used on each day (UTC) of their admission, by model and key; key 0: without a key. Tokens are
-- what upstreams reported, which may be any number.
create table tollbook.usage_day (
  generation int not null,
  account_id bigint not null,
  day date not null,
  key_id bigint not null,
  requests bigint not null,
  failed bigint not null,
  -- micros
  cost bigint not null,
  prompt_tokens numeric not null,
  completion_tokens numeric not null,
  -- of the prompts'
  cached_tokens numeric not null,
  model text collate "C" not null,
  primary key (generation, account_id, day, model, key_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- The result of reconciling a period with the chain. The report is kept byte for byte.
create table tollbook.reconciliation (
  id bigint generated always as identity primary key,
  sha256 bytea not null unique,
  period_from timestamptz not null,
  period_to timestamptz not null,
  size bigint not null,
  root text collate "C" not null,
  result text collate "C" not null check (result in ('clean', 'open_items', 'breaks')),
  breaks int not null,
  open_items int not null,
  report text collate "C" not null,
  at timestamptz not null
);
create index reconciliation_size on tollbook.reconciliation (size);

-- Each completion of an account, newest first by its admission: a read model, kept by tollbook.apply_projection. What is not known yet,
-- or never was, is null; cost is in micros. An index for each way to filter: a page costs the same whatever is behind it.
create table tollbook.completion (
  generation int not null,
  account_id bigint not null,
  -- of its admission
  seq bigint not null,
  at timestamptz not null,
  -- 0 without a key
  key_id bigint not null,
  prompt_tokens bigint,
  completion_tokens bigint,
  -- of the prompt's
  cached_tokens bigint,
  cost bigint,
  chat_id uuid not null,
  status text not null,
  model text collate "C" not null,
  primary key (generation, account_id, seq)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);
create index completion_by_model on tollbook.completion (generation, account_id, model, seq);
create index completion_by_key on tollbook.completion (generation, account_id, key_id, seq);
create index completion_by_model_and_key on tollbook.completion (generation, account_id, model, key_id, seq);
