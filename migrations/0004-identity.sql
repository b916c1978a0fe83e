-- Users: their sessions, the credentials and wallets they sign in with. better-auth defines these tables and writes them
-- itself, so they have a schema of their own. No secret is stored in the form in which it is used.
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
