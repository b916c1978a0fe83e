-- Users: their sessions, the credentials and wallets they sign in with. better-auth defines these tables and writes them
-- itself, so they have a separate schema. No secret is stored in the form in which it is used.
create schema identity;

create table identity."user" (
  id uuid primary key default gen_random_uuid(),
  name text not null,
  -- a user who only has a wallet gets an address that receives no mail
  email text not null unique,
  email_verified boolean not null default false,
  image text,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- A session is found by the hash of its token. An ended session stays until its event is recorded: its token is then no
-- hash, and it has expired.
create table identity.session (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references identity."user" on delete cascade,
  token text collate "C" not null unique,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- columns of the library that must stay empty
  ip_address text check (ip_address = ''),
  user_agent text check (user_agent = ''),
  ended_reason text
);
create index session_owner on identity.session (user_id);
create index session_expiry on identity.session (expires_at);

-- A password (hashed), or an account at an identity provider. The provider's tokens are not kept.
create table identity.credential (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references identity."user" on delete cascade,
  provider_id text not null,
  account_id text not null,
  password text,
  access_token text check (access_token is null),
  refresh_token text check (refresh_token is null),
  id_token text check (id_token is null),
  access_token_expires_at timestamptz,
  refresh_token_expires_at timestamptz,
  scope text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (provider_id, account_id)
);
create index credential_owner on identity.credential (user_id);

-- What a link in a mail, or the redirect from an identity provider, is recognised by. Identifiers are hashes.
create table identity.verification (
  id uuid primary key default gen_random_uuid(),
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index verification_identifier on identity.verification (identifier);
create index verification_expiry on identity.verification (expires_at);

create table identity.wallet (
  address text collate "C" not null check (address ~ '^0x[0-9a-f]{40}$'),
  -- of a contract, whose address may have another owner on another chain; 0 for a key, which is the same on all chains
  chain_id bigint not null check (chain_id >= 0),
  -- deferred: the wallet is inserted first, so that of concurrent sign-ins only one creates the user
  user_id uuid not null references identity."user" on delete cascade deferrable initially deferred,
  created_at timestamptz not null,
  primary key (address, chain_id)
);
create index wallet_owner on identity.wallet (user_id);

create table identity.siwe_nonce (
  nonce text collate "C" primary key,
  issued_at timestamptz not null
);
create index siwe_nonce_age on identity.siwe_nonce (issued_at);

-- Operators: users with a role. Every change of a role, an invitation and a second factor is an event of the ledger as well.
create table identity.operator (
  -- what events call the operator, for ever: a name is never given to another user
  name text collate "C" primary key check (name ~ '^[A-Za-z0-9._-]{1,64}$'),
  user_id uuid unique references identity."user" on delete set null,
  -- null once it was withdrawn
  role text check (role in ('viewer', 'finance', 'operator', 'admin')),
  created_at timestamptz not null
);

-- An operator's proofs in addition to a password or a provider's answer.
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

-- A session whose user has passed a second factor. Found by the hash of its own token, not of the session's.
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
  accepted_at timestamptz,
  -- Whether a command made it, on the gateway's machine: it needs no role. Any other counts while its maker is an admin.
  by_command boolean not null default false
);

-- Codes of a second factor that were typed and not right, by where they came from: a session, a client, a device, or the whole account.
create table identity.factor_guess (
  user_id uuid not null references identity."user" on delete cascade,
  subject text collate "C" not null,
  guesses int not null,
  last_at timestamptz not null,
  primary key (user_id, subject)
);
create index factor_guess_age on identity.factor_guess (last_at);
