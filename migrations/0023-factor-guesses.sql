-- Codes of a second factor that were typed and not right, by where they came from: a session, a client, a device, or the whole account.
create table identity.factor_guess (
  user_id uuid not null references identity."user" on delete cascade,
  subject text collate "C" not null,
  guesses int not null,
  last_at timestamptz not null,
  primary key (user_id, subject)
);
create index factor_guess_age on identity.factor_guess (last_at);
