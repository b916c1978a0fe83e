-- What is open in the books, as it was at any event: the amounts owed, and the settlements without an outcome. Written in the step of the
-- postings. A generation that an earlier version began, or moved since, has none: a gateway builds the next one.
update tollbook.projection set has_postings = false where seq > 0;

-- An item as it was from one event on until another one changed it.
create table tollbook.open_item (
  generation int not null,
  -- of book_account; 0: a settlement without an outcome, which no account has
  account int not null,
  -- the event that made it so, and the one that changed it again; null while none has
  opened bigint not null,
  closed bigint,
  commodity int not null,
  -- the quote, credit account, transfer or spend that it is about, as tollbook.stream_key writes it
  name bytea not null,
  -- who it is owed to, or by
  counterparty text collate "C",
  -- what was added to it and is left, the oldest first: [time, atoms], and the quote of a top-up. Empty: used-up credit
  lots json not null,
  -- of credit: what was taken last, which a correction gives back
  taken json,
  primary key (generation, opened, account, commodity)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);
-- what is open at present
create unique index open_item_present on tollbook.open_item (generation, name, account, commodity) where closed is null;
-- what was open at a moment is among what was closed since: rows lie almost in the order of their ends
create index open_item_closed on tollbook.open_item using brin (closed);
