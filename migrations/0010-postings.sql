-- The books as read models: the postings of every event, and their sums by day. They are written in the step that moves the cursor of the
-- other read models. A generation that an earlier version began, or moved since, has none: a gateway builds the next one, which has them.
alter table tollbook.projection add column has_postings boolean not null default false;
update tollbook.projection set has_postings = true where seq = 0;

-- The accounts of postings, by their first use.
create table tollbook.book_account (
  generation int not null,
  id int not null,
  name text collate "C" not null,
  primary key (generation, id)
);
create unique index book_account_name on tollbook.book_account (generation, name);

-- What is counted: the currency of credit (0), and tokens and coins by their first use. `key` tells what it is, `tag` is its part of
-- accounts' names.
create table tollbook.book_commodity (
  generation int not null,
  id int not null,
  decimals int not null,
  key text collate "C" not null,
  name text collate "C" not null,
  tag text collate "C" not null,
  symbol text collate "C" not null,
  network text collate "C",
  asset text collate "C",
  primary key (generation, id)
);

-- The addresses that received payments, each with its first event: before it, an address is not in the books as a payee.
create table tollbook.book_payee (
  generation int not null,
  network text collate "C" not null,
  address text collate "C" not null,
  since bigint not null,
  primary key (generation, network, address)
);

-- What each account has of granted and of bought credit, in micros, held credit included.
create table tollbook.book_credit (
  generation int not null,
  account_id bigint not null,
  granted bigint not null,
  bought bigint not null,
  primary key (generation, account_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- An amount, above 0, on the debit side of one account and the credit side of another. Four of the columns in an order that needs no
-- padding. Who it is from and for is in its event.
create table tollbook.posting (
  generation int not null,
  debit int not null,
  -- the event that caused it
  seq bigint not null,
  credit int not null,
  commodity int not null,
  -- from 1, within the event
  leg smallint not null,
  category text collate "C" not null,
  atoms numeric not null,
  -- of a conversion to credit, whose event is of the account's stream: the stream of the payment
  quote bytea,
  primary key (generation, seq, leg)
);
create index posting_quote on tollbook.posting (generation, quote) where quote is not null;

-- The sums of postings by account, commodity and day (UTC) of recording.
create table tollbook.balance_day (
  generation int not null,
  account int not null,
  commodity int not null,
  day date not null,
  debits numeric not null,
  credits numeric not null,
  primary key (generation, account, commodity, day)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
