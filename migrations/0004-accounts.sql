-- Accounts of credit, the keys and spends that use it, and the limits that hold over all processes together.

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

-- The balance of each account, updated in the transaction of the credit_* events: their fold, kept.
-- Amounts are micro-units of the currency.
create table tollbook.account (
  account_id bigint generated always as identity primary key,
  name text collate "C" not null unique,
  balance bigint not null default 0 check (balance >= 0),
  held bigint not null default 0 check (held >= 0),
  used bigint not null default 0 check (used >= 0),
  created_at timestamptz not null,
  -- when its opening was recorded; null: that of a user who never had credit, which no event names
  recorded_at timestamptz check (recorded_at is not null or (balance, held, used) = (0, 0, 0)),
  -- an operator has disabled its user: no sign-in, session or key of the account is accepted
  disabled_at timestamptz,
  -- its user was erased: it has no credit and gets none any more
  closed_at timestamptz check (closed_at is null or disabled_at is not null)
) with (fillfactor = 50);

-- A key is stored as its hash only. A revoked key stays for the audit.
create table tollbook.api_key (
  key_id bigint generated always as identity primary key,
  account_id bigint not null references tollbook.account,
  hash bytea not null unique,
  -- by which its owner recognises it: no character of the key is stored
  name text not null,
  -- null: all models; null: no separate cap
  models text[],
  cap bigint check (cap >= 0),
  -- captured and held through this key: compared with the cap
  spent bigint not null default 0 check (spent >= 0),
  -- what it may spend in each UTC day or month; null: no budget
  budget bigint check (budget > 0),
  budget_period text check (budget_period in ('day', 'month')),
  -- the first day of the period that the next two are of: what was held or captured, and what of it was captured
  budget_from date,
  budget_spent bigint not null default 0 check (budget_spent >= 0),
  budget_used bigint not null default 0 check (budget_used >= 0),
  -- the highest part of it, in percent, that its owner was told about in this period
  budget_told smallint not null default 0,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  -- whether the account's user made it, and not an operator
  is_of_user boolean not null,
  check ((budget is null) = (budget_period is null))
) with (fillfactor = 50);
create index api_key_account on tollbook.api_key (account_id);

-- Credit that a completion may cost, from before its upstream is called until the cost is known. Each hold belongs to a
-- live process.
create table tollbook.chat_hold (
  chat_id uuid primary key,
  account_id bigint not null,
  key_id bigint,
  amount bigint not null check (amount >= 0),
  process_id uuid not null,
  -- the first day of the period of its key's budget in which it counts
  budget_from date,
  -- when the answer's first byte was about to be passed on: from then on the hold is captured even if the process ends
  started_at timestamptz,
  created_at timestamptz not null
) with (fillfactor = 50);
create index chat_hold_process on tollbook.chat_hold (process_id);

-- Where the owner of an account is told about the budgets of its keys; the secret signs.
create table tollbook.account_webhook (
  account_id bigint primary key references tollbook.account,
  url text not null,
  secret text not null,
  created_at timestamptz not null
);

-- Completions that were charged their whole hold because their process went silent. If that process settles after all, the
-- excess is returned once.
create table tollbook.recovered_chat (
  chat_id uuid primary key,
  account_id bigint not null,
  key_id bigint,
  amount bigint not null check (amount > 0),
  budget_from date,
  recovered_at timestamptz not null
);

-- Heartbeats. The holds of a process without one are ended by another process.
create table tollbook.process (
  process_id uuid primary key,
  heartbeat_at timestamptz not null,
  -- since when its heartbeats had no long gap: a process with a gap of its own cannot judge others
  alive_since timestamptz not null
);

-- The admissions of one subject: the last minute's in milliseconds, and how many in one UTC day.
create table tollbook.rate_window (
  subject text collate "C" primary key,
  hits bigint[] not null,
  day date not null,
  day_hits int not null,
  -- when a refusal was last recorded, in milliseconds: many refusals in a minute are one event
  refused_at bigint not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
create index rate_window_day on tollbook.rate_window (day);

-- Grants and expiries with a request id, and the balance after them: the same request id moves credit once. An operator's ids
-- are known for 400 days; those of top-ups and their reversals, with a colon, for ever: a refund may come at any time.
create table tollbook.credit_request (
  request_id text collate "C" primary key,
  op text collate "C" not null,
  account_id bigint not null,
  amount bigint not null,
  balance bigint not null,
  created_at timestamptz not null
);
create index credit_request_age on tollbook.credit_request using brin (created_at);
