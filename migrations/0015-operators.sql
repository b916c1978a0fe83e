-- Operators: users with a role. Every change of a role, an invitation and a second factor is an event of the ledger as well.
create table identity.operator (
  -- what events call the operator, for ever: a name is never given to another user
  name text collate "C" primary key check (name ~ '^[A-Za-z0-9._-]{1,64}$'),
  user_id uuid unique references identity."user" on delete set null,
  -- null once it was withdrawn
  role text check (role in ('viewer', 'finance', 'operator', 'admin')),
  created_at timestamptz not null
);

-- What an operator proves beside a password or a provider's word.
create table identity.operator_factor (
  factor_id uuid primary key default gen_random_uuid(),
  user_id uuid not null references identity."user" on delete cascade,
  kind text not null check (kind in ('totp', 'passkey')),
  -- of a passkey, as the browser names it
  credential_id text unique,
  -- the secret of one-time codes, encrypted; the public key of a passkey
  key bytea not null,
  -- the time step of the last code, or the last count of a passkey: nothing is accepted twice
  last_step bigint not null default 0,
  created_at timestamptz not null
);
create index operator_factor_owner on identity.operator_factor (user_id);

-- Each is used once, in place of a second factor that was lost. Hashes.
create table identity.operator_recovery_code (
  user_id uuid not null references identity."user" on delete cascade,
  hash text collate "C" not null,
  primary key (user_id, hash)
);

-- A session whose user has proven a second factor. Found by the hash of its own token, beside that of the session.
create table identity.operator_session (
  token text collate "C" primary key,
  session_id uuid not null references identity.session on delete cascade,
  expires_at timestamptz not null
);
create index operator_session_owner on identity.operator_session (session_id);

create table identity.operator_invitation (
  invitation_id uuid primary key default gen_random_uuid(),
  token text collate "C" not null unique,
  name text collate "C" not null check (name ~ '^[A-Za-z0-9._-]{1,64}$'),
  email text not null,
  role text not null check (role in ('viewer', 'finance', 'operator', 'admin')),
  invited_by text not null,
  expires_at timestamptz not null,
  -- null until it was used
  accepted_at timestamptz
);
