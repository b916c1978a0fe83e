-- The schema that the migrations make, as a test reads it from a fresh database. Written by `npm run schema`.

create table identity.credential (
  id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  provider_id text not null,
  account_id text not null,
  password text,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamp with time zone,
  refresh_token_expires_at timestamp with time zone,
  scope text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint credential_access_token_check CHECK ((access_token IS NULL)),
  constraint credential_id_token_check CHECK ((id_token IS NULL)),
  constraint credential_pkey PRIMARY KEY (id),
  constraint credential_provider_id_account_id_key UNIQUE (provider_id, account_id),
  constraint credential_refresh_token_check CHECK ((refresh_token IS NULL)),
  constraint credential_user_id_fkey FOREIGN KEY (user_id) REFERENCES identity."user"(id) ON DELETE CASCADE
);
CREATE INDEX credential_owner ON identity.credential USING btree (user_id);

create table identity.factor_guess (
  user_id uuid not null,
  subject text collate "C" not null,
  guesses integer not null,
  last_at timestamp with time zone not null,
  constraint factor_guess_pkey PRIMARY KEY (user_id, subject),
  constraint factor_guess_user_id_fkey FOREIGN KEY (user_id) REFERENCES identity."user"(id) ON DELETE CASCADE
);
CREATE INDEX factor_guess_age ON identity.factor_guess USING btree (last_at);

create table identity.operator (
  name text collate "C" not null,
  user_id uuid,
  role text,
  created_at timestamp with time zone not null,
  constraint operator_name_check CHECK ((name ~ '^[A-Za-z0-9._-]{1,64}$'::text)),
  constraint operator_pkey PRIMARY KEY (name),
  constraint operator_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'finance'::text, 'operator'::text, 'admin'::text]))),
  constraint operator_user_id_fkey FOREIGN KEY (user_id) REFERENCES identity."user"(id) ON DELETE SET NULL,
  constraint operator_user_id_key UNIQUE (user_id)
);

create table identity.operator_factor (
  factor_id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  kind text not null,
  credential_id text,
  key bytea not null,
  last_step bigint not null default 0,
  created_at timestamp with time zone not null,
  constraint operator_factor_credential_id_key UNIQUE (credential_id),
  constraint operator_factor_kind_check CHECK ((kind = ANY (ARRAY['totp'::text, 'passkey'::text]))),
  constraint operator_factor_pkey PRIMARY KEY (factor_id),
  constraint operator_factor_user_id_fkey FOREIGN KEY (user_id) REFERENCES identity."user"(id) ON DELETE CASCADE
);
CREATE INDEX operator_factor_owner ON identity.operator_factor USING btree (user_id);

create table identity.operator_invitation (
  invitation_id uuid not null default gen_random_uuid(),
  token text collate "C" not null,
  name text collate "C" not null,
  email text not null,
  role text not null,
  invited_by text not null,
  expires_at timestamp with time zone not null,
  accepted_at timestamp with time zone,
  by_command boolean not null default false,
  constraint operator_invitation_name_check CHECK ((name ~ '^[A-Za-z0-9._-]{1,64}$'::text)),
  constraint operator_invitation_pkey PRIMARY KEY (invitation_id),
  constraint operator_invitation_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'finance'::text, 'operator'::text, 'admin'::text]))),
  constraint operator_invitation_token_key UNIQUE (token)
);

create table identity.operator_recovery_code (
  user_id uuid not null,
  hash text collate "C" not null,
  constraint operator_recovery_code_pkey PRIMARY KEY (user_id, hash),
  constraint operator_recovery_code_user_id_fkey FOREIGN KEY (user_id) REFERENCES identity."user"(id) ON DELETE CASCADE
);

create table identity.operator_session (
  token text collate "C" not null,
  session_id uuid not null,
  expires_at timestamp with time zone not null,
  constraint operator_session_pkey PRIMARY KEY (token),
  constraint operator_session_session_id_fkey FOREIGN KEY (session_id) REFERENCES identity.session(id) ON DELETE CASCADE
);
CREATE INDEX operator_session_owner ON identity.operator_session USING btree (session_id);

create table identity.session (
  id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  token text collate "C" not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  ip_address text,
  user_agent text,
  ended_reason text,
  constraint session_ip_address_check CHECK ((ip_address = ''::text)),
  constraint session_pkey PRIMARY KEY (id),
  constraint session_token_key UNIQUE (token),
  constraint session_user_agent_check CHECK ((user_agent = ''::text)),
  constraint session_user_id_fkey FOREIGN KEY (user_id) REFERENCES identity."user"(id) ON DELETE CASCADE
);
CREATE INDEX session_expiry ON identity.session USING btree (expires_at);
CREATE INDEX session_owner ON identity.session USING btree (user_id);

create table identity.siwe_nonce (
  nonce text collate "C" not null,
  issued_at timestamp with time zone not null,
  constraint siwe_nonce_pkey PRIMARY KEY (nonce)
);
CREATE INDEX siwe_nonce_age ON identity.siwe_nonce USING btree (issued_at);

create table identity."user" (
  id uuid not null default gen_random_uuid(),
  name text not null,
  email text not null,
  email_verified boolean not null default false,
  image text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint user_email_key UNIQUE (email),
  constraint user_pkey PRIMARY KEY (id)
);

create table identity.verification (
  id uuid not null default gen_random_uuid(),
  identifier text not null,
  value text not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint verification_pkey PRIMARY KEY (id)
);
CREATE INDEX verification_expiry ON identity.verification USING btree (expires_at);
CREATE INDEX verification_identifier ON identity.verification USING btree (identifier);

create table identity.wallet (
  address text collate "C" not null,
  chain_id bigint not null,
  user_id uuid not null,
  created_at timestamp with time zone not null,
  constraint wallet_address_check CHECK ((address ~ '^0x[0-9a-f]{40}$'::text)),
  constraint wallet_chain_id_check CHECK ((chain_id >= 0)),
  constraint wallet_pkey PRIMARY KEY (address, chain_id),
  constraint wallet_user_id_fkey FOREIGN KEY (user_id) REFERENCES identity."user"(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX wallet_owner ON identity.wallet USING btree (user_id);

create table tollbook.account (
  account_id bigint not null generated always as identity,
  name text collate "C" not null,
  balance bigint not null default 0,
  held bigint not null default 0,
  used bigint not null default 0,
  created_at timestamp with time zone not null,
  recorded_at timestamp with time zone,
  disabled_at timestamp with time zone,
  closed_at timestamp with time zone,
  constraint account_balance_check CHECK ((balance >= 0)),
  constraint account_check CHECK (((recorded_at IS NOT NULL) OR ((balance = 0) AND (held = 0) AND (used = 0)))),
  constraint account_check1 CHECK (((closed_at IS NULL) OR (disabled_at IS NOT NULL))),
  constraint account_held_check CHECK ((held >= 0)),
  constraint account_name_key UNIQUE (name),
  constraint account_pkey PRIMARY KEY (account_id),
  constraint account_used_check CHECK ((used >= 0))
) with (fillfactor=50);

create table tollbook.account_credit (
  generation integer not null,
  account_id bigint not null,
  name text collate "C",
  balance bigint not null,
  held bigint not null,
  granted bigint not null,
  topped_up bigint not null,
  captured bigint not null,
  expired bigint not null,
  last_seq bigint not null,
  constraint account_credit_pkey PRIMARY KEY (generation, account_id)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX account_credit_name ON tollbook.account_credit USING btree (generation, name);

create table tollbook.account_webhook (
  account_id bigint not null,
  url text not null,
  secret text not null,
  created_at timestamp with time zone not null,
  constraint account_webhook_account_id_fkey FOREIGN KEY (account_id) REFERENCES tollbook.account(account_id),
  constraint account_webhook_pkey PRIMARY KEY (account_id)
);

create table tollbook.alert (
  kind text collate "C" not null,
  subject text collate "C" not null,
  is_firing boolean not null,
  since timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  told_at timestamp with time zone not null,
  text text not null,
  details json not null,
  constraint alert_pkey PRIMARY KEY (kind, subject)
);

create table tollbook.alert_sender (
  is_only boolean not null default true,
  process_id uuid,
  until timestamp with time zone not null,
  constraint alert_sender_is_only_check CHECK (is_only),
  constraint alert_sender_pkey PRIMARY KEY (is_only)
);

create table tollbook.api_key (
  key_id bigint not null generated always as identity,
  account_id bigint not null,
  hash bytea not null,
  name text not null,
  models text[],
  cap bigint,
  spent bigint not null default 0,
  budget bigint,
  budget_period text,
  budget_from date,
  budget_spent bigint not null default 0,
  budget_used bigint not null default 0,
  budget_told smallint not null default 0,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  is_of_user boolean not null,
  constraint api_key_account_id_fkey FOREIGN KEY (account_id) REFERENCES tollbook.account(account_id),
  constraint api_key_budget_check CHECK ((budget > 0)),
  constraint api_key_budget_period_check CHECK ((budget_period = ANY (ARRAY['day'::text, 'month'::text]))),
  constraint api_key_budget_spent_check CHECK ((budget_spent >= 0)),
  constraint api_key_budget_used_check CHECK ((budget_used >= 0)),
  constraint api_key_cap_check CHECK ((cap >= 0)),
  constraint api_key_check CHECK (((budget IS NULL) = (budget_period IS NULL))),
  constraint api_key_hash_key UNIQUE (hash),
  constraint api_key_pkey PRIMARY KEY (key_id),
  constraint api_key_spent_check CHECK ((spent >= 0))
) with (fillfactor=50);
CREATE INDEX api_key_account ON tollbook.api_key USING btree (account_id);

create table tollbook.balance_day (
  generation integer not null,
  account integer not null,
  commodity integer not null,
  day date not null,
  debits numeric not null,
  credits numeric not null,
  constraint balance_day_pkey PRIMARY KEY (generation, account, commodity, day)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.02);

create table tollbook.book_account (
  generation integer not null,
  id integer not null,
  name text collate "C" not null,
  constraint book_account_pkey PRIMARY KEY (generation, id)
);
CREATE UNIQUE INDEX book_account_name ON tollbook.book_account USING btree (generation, name);

create table tollbook.book_commodity (
  generation integer not null,
  id integer not null,
  decimals integer not null,
  key text collate "C" not null,
  name text collate "C" not null,
  tag text collate "C" not null,
  symbol text collate "C" not null,
  network text collate "C",
  asset text collate "C",
  constraint book_commodity_pkey PRIMARY KEY (generation, id)
);

create table tollbook.book_credit (
  generation integer not null,
  account_id bigint not null,
  granted bigint not null,
  bought bigint not null,
  constraint book_credit_pkey PRIMARY KEY (generation, account_id)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.02);

create table tollbook.book_payee (
  generation integer not null,
  network text collate "C" not null,
  address text collate "C" not null,
  since bigint not null,
  constraint book_payee_pkey PRIMARY KEY (generation, network, address)
);

create table tollbook.call (
  call_id bigint not null generated always as identity,
  service_id bigint not null,
  job_index bigint not null,
  created_at timestamp with time zone not null,
  body_id uuid not null,
  stream text collate "C" not null,
  network text,
  asset text,
  symbol text,
  caller text,
  payment text collate "C" not null,
  claims json,
  traceparent text,
  last_error text,
  last_reason text,
  last_runner text,
  status text collate "C" not null,
  lease_id uuid,
  attempt integer not null default 0,
  failures integer not null default 0,
  due_at timestamp with time zone not null,
  order_key bytea,
  key_limit smallint,
  key_slot smallint,
  key_turn bigint,
  keeps_key boolean not null default false,
  waits boolean not null default false,
  trigger_kind text collate "C",
  trigger_name text collate "C",
  trigger_id text collate "C",
  key_failures integer,
  refusals integer not null default 0,
  idempotency_key text collate "C",
  enqueued_at timestamp with time zone not null default now(),
  constraint call_pkey PRIMARY KEY (call_id),
  constraint call_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'watched'::text, 'ready'::text, 'leased'::text, 'unpaid'::text, 'dead'::text])))
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.01);
CREATE INDEX call_age ON tollbook.call USING btree (status, enqueued_at) WHERE (status = ANY (ARRAY['ready'::text, 'leased'::text]));
CREATE INDEX call_dead ON tollbook.call USING btree (call_id) WHERE (status = 'dead'::text);
CREATE INDEX call_dead_by_job ON tollbook.call USING btree (service_id, job_index, due_at) WHERE (status = 'dead'::text);
CREATE INDEX call_key_turn ON tollbook.call USING btree (order_key, key_turn) WHERE waits;
CREATE INDEX call_leased_by_job ON tollbook.call USING btree (service_id, job_index, due_at) WHERE (status = 'leased'::text);
CREATE INDEX call_ready ON tollbook.call USING btree (service_id, waits, job_index, due_at) WHERE (status = ANY (ARRAY['ready'::text, 'leased'::text]));
CREATE INDEX call_undelivered ON tollbook.call USING btree (service_id, created_at) WHERE ((status = ANY (ARRAY['ready'::text, 'leased'::text])) AND ((failures > 0) OR (last_reason = 'status_503'::text)));
CREATE INDEX call_unsettled ON tollbook.call USING btree (status, due_at) WHERE (status = ANY (ARRAY['pending'::text, 'watched'::text, 'unpaid'::text]));
CREATE UNIQUE INDEX call_key_place ON tollbook.call USING btree (order_key, key_slot) WHERE (key_slot IS NOT NULL);

create table tollbook.call_body (
  body_id uuid not null,
  content_type text,
  body bytea not null,
  created_at timestamp with time zone not null,
  constraint call_body_pkey PRIMARY KEY (body_id)
);
CREATE INDEX call_body_age ON tollbook.call_body USING brin (created_at);

create table tollbook.call_progress (
  call_id bigint not null,
  lease_id uuid not null,
  fraction double precision,
  message text,
  reported_at timestamp with time zone not null,
  constraint call_progress_pkey PRIMARY KEY (call_id)
);

create table tollbook.call_result (
  call_id bigint not null,
  attempt integer not null,
  lease_id uuid not null,
  content_type text,
  body bytea not null,
  head text,
  created_at timestamp with time zone not null,
  constraint call_result_pkey PRIMARY KEY (call_id, attempt)
);
CREATE INDEX call_result_age ON tollbook.call_result USING brin (created_at);

create table tollbook.callback (
  stream bytea not null,
  binding bytea not null,
  url text not null,
  payer text collate "C" not null,
  created_at timestamp with time zone not null,
  seq bigint,
  told_seq bigint not null default 0,
  seen_at timestamp with time zone,
  due_at timestamp with time zone,
  tries integer not null default 0,
  outcome text collate "C",
  outcome_at timestamp with time zone,
  last_failure text,
  constraint callback_outcome_check CHECK ((outcome = ANY (ARRAY['delivered'::text, 'given_up'::text]))),
  constraint callback_pkey PRIMARY KEY (stream, binding)
) with (autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX callback_created ON tollbook.callback USING btree (created_at);
CREATE INDEX callback_due ON tollbook.callback USING btree (tries, due_at) WHERE (due_at IS NOT NULL);

create table tollbook.caller_nonce (
  caller text collate "C" not null,
  service_id bigint not null,
  job_index bigint not null,
  nonce_sha256 text collate "C" not null,
  stream text collate "C" not null,
  used_at timestamp with time zone not null,
  constraint caller_nonce_pkey PRIMARY KEY (caller, service_id, job_index, nonce_sha256)
);

create table tollbook.chat_hold (
  chat_id uuid not null,
  account_id bigint not null,
  key_id bigint,
  amount bigint not null,
  process_id uuid not null,
  budget_from date,
  started_at timestamp with time zone,
  created_at timestamp with time zone not null,
  constraint chat_hold_amount_check CHECK ((amount >= 0)),
  constraint chat_hold_pkey PRIMARY KEY (chat_id)
) with (fillfactor=50);
CREATE INDEX chat_hold_process ON tollbook.chat_hold USING btree (process_id);

create table tollbook.claim (
  key bytea not null,
  binding bytea not null,
  stream bytea not null,
  constraint claim_pkey PRIMARY KEY (key)
);

create table tollbook.completion (
  generation integer not null,
  account_id bigint not null,
  seq bigint not null,
  at timestamp with time zone not null,
  key_id bigint not null,
  prompt_tokens bigint,
  completion_tokens bigint,
  cached_tokens bigint,
  cost bigint,
  chat_id uuid not null,
  status text not null,
  model text collate "C" not null,
  constraint completion_pkey PRIMARY KEY (generation, account_id, seq)
) with (fillfactor=90, autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX completion_by_key ON tollbook.completion USING btree (generation, account_id, key_id, seq);
CREATE INDEX completion_by_model ON tollbook.completion USING btree (generation, account_id, model, seq);
CREATE INDEX completion_by_model_and_key ON tollbook.completion USING btree (generation, account_id, model, key_id, seq);

create table tollbook.credit_request (
  request_id text collate "C" not null,
  op text collate "C" not null,
  account_id bigint not null,
  amount bigint not null,
  balance bigint not null,
  created_at timestamp with time zone not null,
  constraint credit_request_pkey PRIMARY KEY (request_id)
);
CREATE INDEX credit_request_age ON tollbook.credit_request USING brin (created_at);

create table tollbook.database_identity (
  is_only boolean not null default true,
  system_identifier text collate "C",
  oid bigint not null,
  timeline integer,
  recorded_at timestamp with time zone not null,
  constraint database_identity_is_only_check CHECK (is_only),
  constraint database_identity_pkey PRIMARY KEY (is_only)
);

create table tollbook.deleted_result (
  call_id bigint not null,
  attempt integer not null,
  deleted_at timestamp with time zone not null,
  constraint deleted_result_pkey PRIMARY KEY (call_id, attempt)
);

create table tollbook.event (
  seq bigint not null,
  at timestamp with time zone not null,
  version integer not null,
  lane_id smallint not null,
  stream bytea not null,
  type text collate "C" not null,
  data text collate "C" not null,
  constraint event_pkey PRIMARY KEY (lane_id, seq),
  constraint event_stream_check CHECK (((octet_length(stream) = 32) OR (((octet_length(stream) >= 1) AND (octet_length(stream) <= 128)) AND (encode(stream, 'escape'::text) !~ '[^A-Za-z0-9:_.-]'::text)) OR ((octet_length(stream) = 33) AND (substr(stream, 33) = '\x00'::bytea) AND (encode(substr(stream, 1, 32), 'escape'::text) !~ '[^A-Za-z0-9:_.-]'::text)))),
  constraint event_stream_version_key UNIQUE (stream, version),
  constraint event_type_check CHECK ((((octet_length(type) >= 1) AND (octet_length(type) <= 64)) AND (type !~ '[^a-z_]'::text)))
);
CREATE INDEX event_at ON tollbook.event USING brin (at);
CREATE INDEX event_rare ON tollbook.event USING btree (type, seq) WHERE (type = ANY (ARRAY['refunded'::text, 'settlement_failed'::text, 'settlement_disproved'::text, 'settlement_reorged'::text, 'payment_recovered'::text, 'redelivery_requested'::text, 'enqueued_again'::text, 'operator_requeued'::text, 'operator_sweep_recorded'::text, 'operator_transfer_recorded'::text, 'operator_transfer_reversed'::text, 'operator_break_explained'::text, 'spend_paid_out'::text]));
CREATE TRIGGER event_is_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON tollbook.event FOR EACH STATEMENT EXECUTE FUNCTION tollbook.refuse_change();

create table tollbook.event_allowance (
  kind text collate "C" not null,
  available double precision not null,
  filled_at timestamp with time zone not null,
  constraint event_allowance_pkey PRIMARY KEY (kind)
);

create table tollbook.follow_up (
  seq bigint not null,
  created_at timestamp with time zone not null,
  topic text collate "C" not null,
  network text collate "C" not null,
  block_number numeric,
  first_search_block numeric,
  tries integer not null default 0,
  due_at timestamp with time zone not null,
  retry_at timestamp with time zone,
  constraint follow_up_pkey PRIMARY KEY (topic, seq),
  constraint follow_up_topic_check CHECK ((topic = ANY (ARRAY['confirm'::text, 'resolve'::text, 'alert'::text, 'reverse_top_up'::text, 'unreadable'::text])))
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.01);
CREATE INDEX follow_up_due ON tollbook.follow_up USING btree (topic, due_at) WHERE (block_number IS NULL);
CREATE INDEX follow_up_in_block ON tollbook.follow_up USING btree (network, block_number) WHERE (block_number IS NOT NULL);

create table tollbook.function_file (
  name text collate "C" not null,
  sha256 bytea not null,
  constraint function_file_pkey PRIMARY KEY (name)
);

create table tollbook.gateway_process (
  process_id uuid not null,
  heartbeat_at timestamp with time zone not null,
  constraint gateway_process_pkey PRIMARY KEY (process_id)
);

create table tollbook.job_day (
  generation integer not null,
  day date not null,
  service_id bigint not null,
  job_index bigint not null,
  network text collate "C" not null,
  asset text collate "C" not null,
  symbol text collate "C" not null,
  decimals integer not null,
  payments bigint not null,
  amount numeric not null,
  completed bigint not null,
  dead_lettered bigint not null,
  refunded bigint not null default 0,
  refunded_amount numeric not null default 0,
  constraint job_day_pkey PRIMARY KEY (generation, day, service_id, job_index, network, asset)
) with (fillfactor=50);

create table tollbook.lane (
  lane_id smallint not null,
  batch bigint not null,
  seq bigint not null,
  at timestamp with time zone not null,
  open_calls bigint not null,
  unsettled_calls bigint not null,
  halt_reason text,
  halt_known_seq bigint,
  halt_found_seq bigint,
  halted_at timestamp with time zone,
  triggered_calls bigint not null default 0,
  constraint lane_pkey PRIMARY KEY (lane_id, batch)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);

create table tollbook.lane_batch (
  sender_hash bytea not null,
  batch_no bigint not null,
  content_hash bytea not null,
  answer json not null,
  at timestamp with time zone not null,
  constraint lane_batch_pkey PRIMARY KEY (sender_hash, batch_no)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);

create table tollbook.lane_counter (
  lane_id smallint not null,
  type text not null,
  batch bigint not null,
  count bigint not null,
  constraint lane_counter_pkey PRIMARY KEY (lane_id, type, batch)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000);

create table tollbook.lane_lock (
  lane_id smallint not null,
  constraint lane_lock_pkey PRIMARY KEY (lane_id)
);

create table tollbook.ledger_cursor (
  name text collate "C" not null,
  seq bigint not null,
  constraint ledger_cursor_pkey PRIMARY KEY (name)
);

create table tollbook.log_anchor (
  origin text collate "C" not null,
  name text collate "C" not null,
  size bigint not null,
  due_at timestamp with time zone not null,
  constraint log_anchor_pkey PRIMARY KEY (origin, name)
);

create table tollbook.log_anchored_head (
  origin text collate "C" not null,
  size bigint not null,
  constraint log_anchored_head_pkey PRIMARY KEY (origin, size)
);
CREATE TRIGGER log_anchored_head_is_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON tollbook.log_anchored_head FOR EACH STATEMENT EXECUTE FUNCTION tollbook.refuse_change();

create table tollbook.log_head (
  origin text collate "C" not null,
  size bigint not null,
  lane_id smallint not null,
  root bytea not null,
  note text not null,
  at timestamp with time zone not null,
  constraint log_head_pkey PRIMARY KEY (origin, size)
);
CREATE TRIGGER log_head_is_immutable BEFORE UPDATE OR TRUNCATE ON tollbook.log_head FOR EACH STATEMENT EXECUTE FUNCTION tollbook.refuse_change();
CREATE TRIGGER needed_log_head_stays BEFORE DELETE ON tollbook.log_head FOR EACH ROW EXECUTE FUNCTION tollbook.refuse_needed_head();

create table tollbook.log_tile (
  lane_id smallint not null,
  level smallint not null,
  tile bigint not null,
  hashes bytea storage e not null,
  constraint log_tile_pkey PRIMARY KEY (lane_id, level, tile)
);

create table tollbook.log_tree (
  lane_id smallint not null,
  size bigint not null,
  edge bytea not null,
  constraint log_tree_lane_id_fkey FOREIGN KEY (lane_id) REFERENCES tollbook.lane_lock(lane_id),
  constraint log_tree_pkey PRIMARY KEY (lane_id)
);

create table tollbook.open_item (
  generation integer not null,
  account integer not null,
  opened bigint not null,
  closed bigint,
  commodity integer not null,
  name bytea not null,
  counterparty text collate "C",
  lots json not null,
  taken json,
  constraint open_item_pkey PRIMARY KEY (generation, opened, account, commodity)
) with (fillfactor=90, autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX open_item_closed ON tollbook.open_item USING brin (closed);
CREATE UNIQUE INDEX open_item_present ON tollbook.open_item USING btree (generation, name, account, commodity) WHERE (closed IS NULL);

create table tollbook.operator_token (
  token_id bigint not null generated always as identity,
  name text not null,
  scopes text[] not null,
  accounts text[],
  hash bytea not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint operator_token_hash_key UNIQUE (hash),
  constraint operator_token_name_check CHECK ((name ~ '^[A-Za-z0-9._-]{1,64}$'::text)),
  constraint operator_token_pkey PRIMARY KEY (token_id)
);

create table tollbook.paid_call (
  generation integer not null,
  attempts integer not null,
  call_id bigint not null,
  seq bigint not null,
  service_id bigint not null,
  job_index bigint not null,
  enqueued_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  status text collate "C" not null,
  constraint paid_call_pkey PRIMARY KEY (generation, call_id)
) with (fillfactor=80, autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX paid_call_status ON tollbook.paid_call USING btree (generation, status, call_id) WHERE (status <> 'completed'::text);

create table tollbook.payee (
  generation integer not null,
  network text collate "C" not null,
  asset text collate "C" not null,
  pay_to text collate "C" not null,
  symbol text collate "C" not null,
  decimals integer not null,
  constraint payee_pkey PRIMARY KEY (generation, network, asset, pay_to)
);

create table tollbook.payment (
  generation integer not null,
  decimals integer not null,
  seq bigint not null,
  at timestamp with time zone not null,
  service_id bigint,
  job_index bigint,
  network text collate "C" not null,
  asset bytea not null,
  symbol text collate "C" not null,
  amount numeric not null,
  payer bytea not null,
  pay_to bytea not null,
  transaction bytea,
  quote_source text collate "C",
  refund_due_since timestamp with time zone,
  refund_started_at timestamp with time zone,
  refund_due text collate "C",
  refunded_at timestamp with time zone,
  refund_transaction bytea,
  call_id bigint,
  settled_at timestamp with time zone,
  last_seq bigint not null,
  block_number numeric,
  state text collate "C" not null,
  refunded_amount numeric not null default 0,
  refund_requested_at timestamp with time zone,
  constraint payment_pkey PRIMARY KEY (generation, seq)
) with (fillfactor=80, autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX payment_job ON tollbook.payment USING btree (generation, service_id, job_index, seq);
CREATE INDEX payment_payer ON tollbook.payment USING btree (generation, payer, seq);
CREATE INDEX payment_refund_due ON tollbook.payment USING btree (generation, seq) WHERE (refund_due IS NOT NULL);
CREATE INDEX payment_refund_requested ON tollbook.payment USING btree (generation, refund_requested_at) WHERE (refund_requested_at IS NOT NULL);
CREATE INDEX payment_refund_started ON tollbook.payment USING btree (generation, refund_started_at) WHERE (refund_started_at IS NOT NULL);
CREATE INDEX payment_settled_late ON tollbook.payment USING btree (generation, settled_at) WHERE ((settled_at - at) > '1 day'::interval);
CREATE INDEX payment_state ON tollbook.payment USING btree (generation, state, seq) WHERE (state <> 'completed'::text);
CREATE INDEX payment_transaction ON tollbook.payment USING btree (generation, transaction) WHERE (transaction IS NOT NULL);
CREATE INDEX payment_transaction_words ON tollbook.payment USING gin ((ARRAY[((get_byte(transaction, 0) * 256) + get_byte(transaction, 1)), ((get_byte(transaction, 2) * 256) + get_byte(transaction, 3)), ((get_byte(transaction, 4) * 256) + get_byte(transaction, 5)), ((get_byte(transaction, 6) * 256) + get_byte(transaction, 7)), ((get_byte(transaction, 8) * 256) + get_byte(transaction, 9)), ((get_byte(transaction, 10) * 256) + get_byte(transaction, 11)), ((get_byte(transaction, 12) * 256) + get_byte(transaction, 13)), ((get_byte(transaction, 14) * 256) + get_byte(transaction, 15)), ((get_byte(transaction, 16) * 256) + get_byte(transaction, 17)), ((get_byte(transaction, 18) * 256) + get_byte(transaction, 19)), ((get_byte(transaction, 20) * 256) + get_byte(transaction, 21)), ((get_byte(transaction, 22) * 256) + get_byte(transaction, 23)), ((get_byte(transaction, 24) * 256) + get_byte(transaction, 25)), ((get_byte(transaction, 26) * 256) + get_byte(transaction, 27)), ((get_byte(transaction, 28) * 256) + get_byte(transaction, 29)), ((get_byte(transaction, 30) * 256) + get_byte(transaction, 31))])) WITH (gin_pending_list_limit='512') WHERE (length(transaction) = 32);

create table tollbook.payout (
  stream text collate "C" not null,
  status text collate "C" not null default 'open'::text,
  attempts integer not null default 0,
  last_reason text,
  due_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  expiry numeric,
  transaction text collate "C",
  checks integer not null default 0,
  constraint payout_pkey PRIMARY KEY (stream),
  constraint payout_status_check CHECK ((status = ANY (ARRAY['open'::text, 'failed'::text])))
) with (autovacuum_vacuum_scale_factor=0.01);
CREATE INDEX payout_new ON tollbook.payout USING btree (expiry NULLS FIRST) WHERE ((status = 'open'::text) AND (transaction IS NULL));
CREATE INDEX payout_sent ON tollbook.payout USING btree (due_at) WHERE ((status = 'open'::text) AND (transaction IS NOT NULL));

create table tollbook.posting (
  generation integer not null,
  debit integer not null,
  seq bigint not null,
  credit integer not null,
  commodity integer not null,
  leg smallint not null,
  category text collate "C" not null,
  atoms numeric not null,
  quote bytea,
  constraint posting_pkey PRIMARY KEY (generation, seq, leg)
);
CREATE INDEX posting_quote ON tollbook.posting USING btree (generation, quote) WHERE (quote IS NOT NULL);

create table tollbook.price_list (
  list_id bytea not null,
  offered_at timestamp with time zone not null,
  valid_until timestamp with time zone not null,
  constraint price_list_pkey PRIMARY KEY (list_id)
) with (fillfactor=50);

create table tollbook.price_window (
  list_id bytea not null,
  service_id bigint not null,
  job_index bigint not null,
  network text collate "C" not null,
  transfer_method text collate "C" not null,
  asset text collate "C" not null,
  pay_to text collate "C" not null,
  amount numeric not null,
  price_wei numeric not null,
  credit_micros numeric,
  constraint price_window_list_id_fkey FOREIGN KEY (list_id) REFERENCES tollbook.price_list(list_id) ON DELETE CASCADE,
  constraint price_window_pkey PRIMARY KEY (service_id, job_index, network, asset, transfer_method, pay_to, amount, list_id)
);
CREATE INDEX price_window_list ON tollbook.price_window USING btree (list_id, service_id, job_index);

create table tollbook.process (
  process_id uuid not null,
  heartbeat_at timestamp with time zone not null,
  alive_since timestamp with time zone not null,
  constraint process_pkey PRIMARY KEY (process_id)
);

create table tollbook.projection (
  generation integer not null,
  seq bigint not null,
  is_active boolean not null,
  touched_at timestamp with time zone not null,
  has_postings boolean not null default false,
  constraint projection_pkey PRIMARY KEY (generation)
);
CREATE UNIQUE INDEX projection_active ON tollbook.projection USING btree (is_active) WHERE is_active;

create table tollbook.prune_sum (
  round bigint not null,
  kind text collate "C" not null,
  count bigint not null,
  before timestamp with time zone not null,
  constraint prune_sum_pkey PRIMARY KEY (round, kind)
);

create table tollbook.rate_window (
  subject text collate "C" not null,
  hits bigint[] not null,
  day date not null,
  day_hits integer not null,
  refused_at bigint not null default 0,
  constraint rate_window_pkey PRIMARY KEY (subject)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.01);
CREATE INDEX rate_window_day ON tollbook.rate_window USING btree (day);

create table tollbook.reconciliation (
  id bigint not null generated always as identity,
  sha256 bytea not null,
  period_from timestamp with time zone not null,
  period_to timestamp with time zone not null,
  size bigint not null,
  root text collate "C" not null,
  result text collate "C" not null,
  breaks integer not null,
  open_items integer not null,
  report text collate "C" not null,
  at timestamp with time zone not null,
  constraint reconciliation_pkey PRIMARY KEY (id),
  constraint reconciliation_result_check CHECK ((result = ANY (ARRAY['clean'::text, 'open_items'::text, 'breaks'::text]))),
  constraint reconciliation_sha256_key UNIQUE (sha256)
);
CREATE INDEX reconciliation_size ON tollbook.reconciliation USING btree (size);
CREATE TRIGGER reconciliation_is_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON tollbook.reconciliation FOR EACH STATEMENT EXECUTE FUNCTION tollbook.refuse_change();

create table tollbook.recovered_chat (
  chat_id uuid not null,
  account_id bigint not null,
  key_id bigint,
  amount bigint not null,
  budget_from date,
  recovered_at timestamp with time zone not null,
  constraint recovered_chat_amount_check CHECK ((amount > 0)),
  constraint recovered_chat_pkey PRIMARY KEY (chat_id)
);

create table tollbook.refund_reason (
  stream bytea not null,
  sha256 bytea not null,
  payer text collate "C" not null,
  reason text not null,
  created_at timestamp with time zone not null,
  constraint refund_reason_pkey PRIMARY KEY (stream, sha256)
);
CREATE INDEX refund_reason_created ON tollbook.refund_reason USING btree (created_at);
CREATE INDEX refund_reason_payer ON tollbook.refund_reason USING btree (payer);

create table tollbook.refused_request (
  key bytea not null,
  refused_at timestamp with time zone not null,
  constraint refused_request_pkey PRIMARY KEY (key, refused_at)
);
CREATE INDEX refused_request_age ON tollbook.refused_request USING btree (refused_at);

create table tollbook.result_upload (
  call_id bigint not null,
  lease_id uuid not null,
  parts integer not null,
  bytes bigint,
  sha256 bytea,
  created_at timestamp with time zone not null,
  constraint result_upload_pkey PRIMARY KEY (call_id, lease_id)
);

create table tollbook.runner_gone (
  runner text collate "C" not null,
  call_id bigint not null,
  at timestamp with time zone not null,
  constraint runner_gone_pkey PRIMARY KEY (runner, call_id)
);

create table tollbook.secret (
  name text not null,
  value bytea not null,
  constraint secret_pkey PRIMARY KEY (name)
);

create table tollbook.spend_exposure (
  stream text collate "C" not null,
  scope text collate "C" not null,
  commitment text collate "C" not null,
  nonce numeric not null,
  amount numeric not null,
  status text collate "C" not null default 'open'::text,
  created_at timestamp with time zone not null,
  constraint spend_exposure_pkey PRIMARY KEY (stream),
  constraint spend_exposure_status_check CHECK ((status = ANY (ARRAY['open'::text, 'failed'::text])))
);
CREATE INDEX spend_exposure_account ON tollbook.spend_exposure USING btree (commitment, scope);

create table tollbook.task (
  task_id bigint not null generated always as identity,
  kind text collate "C" not null,
  queue text collate "C" not null,
  key text collate "C" not null,
  created_at timestamp with time zone not null,
  ok_at timestamp with time zone not null,
  error text collate "C",
  payload json not null,
  takes integer not null default 0,
  taken_at timestamp with time zone,
  due_at timestamp with time zone not null,
  constraint task_kind_check CHECK ((kind = ANY (ARRAY['alert_message'::text, 'budget_message'::text, 'chain_trigger'::text, 'listing'::text, 'prune'::text, 'rate'::text, 'schedule'::text]))),
  constraint task_kind_queue_key_key UNIQUE (kind, queue, key),
  constraint task_pkey PRIMARY KEY (task_id)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.01);

create table tollbook.usage_day (
  generation integer not null,
  account_id bigint not null,
  day date not null,
  key_id bigint not null,
  requests bigint not null,
  failed bigint not null,
  cost bigint not null,
  prompt_tokens numeric not null,
  completion_tokens numeric not null,
  cached_tokens numeric not null,
  model text collate "C" not null,
  constraint usage_day_pkey PRIMARY KEY (generation, account_id, day, model, key_id)
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.02);

create table tollbook.worker_process (
  process_id uuid not null,
  heartbeat_at timestamp with time zone not null,
  constraint worker_process_pkey PRIMARY KEY (process_id)
);

create function audit.events_of(p_stream text) returns SETOF audit.event language sql stable; -- f21d1c4a8d3d47a8
create function audit.is_readable(p_text text) returns boolean language sql immutable; -- 047a6654b93b1583
create function audit.json_of(p_text text) returns jsonb language sql stable; -- 5c1a9811071a8b4d
create function audit.payments_by(p_transaction text) returns SETOF audit.payment language sql stable; -- 874167c49cf06d40
create function audit.time_of(p_secs bigint) returns timestamp with time zone language sql immutable; -- a74e0a44aa40baf4
create function audit.tokens(p_atoms numeric, p_decimals integer) returns numeric language sql immutable; -- 6d2a31f7217f16f8
create function identity.is_admin(p_name text) returns boolean language sql stable; -- d32f158ac29ed244
create function identity.link_wallet(p_address text, p_chain_id bigint, p_user_id uuid) returns uuid language plpgsql volatile; -- 9f964f7c53af84c4
create function identity.take_guess(p_user_id uuid, p_subjects text[], p_free integer[], OUT wait_ms bigint, OUT guesses integer) returns record language plpgsql volatile; -- 456b02af1cf1796e
create function identity.take_role(p_name text, p_by text, p_keeps_last boolean) returns text language plpgsql volatile; -- c9a7ea694bc4fa11
create function identity.unlink_wallet(p_address text, p_user_id uuid, p_providers text[]) returns text language plpgsql volatile; -- 9c143b674cfdde80
create function identity.user_of_wallet(p_address text, p_chain_id bigint, p_user_id uuid, p_name text, p_email text) returns uuid language plpgsql volatile; -- a1fab175c45cc243
create function tollbook.activate_projection(p_generation integer) returns integer language plpgsql volatile security definer; -- 66c6428e0b52119b
create function tollbook.add_pruned(p_round bigint, p_kind text, p_count bigint, p_before timestamp with time zone) returns void language sql volatile; -- 4d0b80b3117e414b
create function tollbook.add_to_tiles(p_lane smallint, p_level integer, p_first bigint, p_hashes bytea) returns void language plpgsql volatile; -- af904ec54367e5ac
create function tollbook.admit_chat(p_admission json, p_now timestamp with time zone) returns json language plpgsql volatile; -- a398ede04214b3eb
create function tollbook.admit_uncontended(p_admitted text, p_moment timestamp with time zone) returns text language plpgsql volatile; -- fc92d6ab749480fc
create function tollbook.advance_cursor(p_name text, p_max integer, OUT previous bigint, OUT last bigint) returns record language plpgsql volatile; -- 337ea455e6d4ca14
create function tollbook.append(p_lane smallint, p_flusher uuid, p_batch_no bigint, p_acknowledged bigint, p_commands json) returns json language plpgsql volatile security definer; -- ab0ee1f483b5ef14
create function tollbook.append_uncontended(p_lane smallint, p_flusher uuid, p_batch_no bigint, p_acknowledged bigint, p_content bytea, p_types text, p_data text, p_streams text, p_expected text, p_bodies text, p_claims text, p_added text, p_call_ids text, p_call_ops text, p_leases text, p_issued text DEFAULT ''::text, p_admitted text DEFAULT ''::text, p_settled text DEFAULT ''::text, p_ends text DEFAULT ''::text, p_nonces text DEFAULT ''::text, p_refused text DEFAULT ''::text, p_unless_refused text DEFAULT ''::text) returns json language plpgsql volatile security definer; -- 97ae65ec3a2335d7
create function tollbook.apply_books(p_generation integer, p_books json) returns void language plpgsql volatile; -- 470c1f06b0022522
create function tollbook.apply_projection(p_generation integer, p_from bigint, p_to bigint, p_payments json, p_calls json, p_accounts json, p_usage json, p_completions json, p_books json DEFAULT NULL::json) returns boolean language plpgsql volatile security definer; -- fba4baa270225cf7
create function tollbook.are_held(p_settled text) returns boolean language plpgsql volatile; -- 6101736227a5357f
create function tollbook.back_off(p_tries integer) returns interval language sql immutable; -- 2419fad76ab41085
create function tollbook.begin_projection() returns integer language sql volatile security definer; -- 5a21f7ea27554f36
create function tollbook.begin_prune_round(p_lease_ms integer) returns boolean language sql volatile security definer; -- a7b1c2111d3289b8
create function tollbook.begin_round(p_kind text, p_queue text, p_key text, p_lease_ms integer) returns TABLE(round integer, payload json, ok_at timestamp with time zone, begun_at timestamp with time zone) language sql volatile security definer; -- 311e68920772cd1f
create function tollbook.body_hash(p_body_id uuid) returns TABLE(sha256 text, bytes bigint) language sql stable security definer; -- ebfc5825169fd403
create function tollbook.budget_end(p_period text, p_start date) returns timestamp with time zone language sql immutable; -- 52194709abff461d
create function tollbook.budget_start(p_period text, p_known date, p_now timestamp with time zone) returns date language sql immutable; -- b614b6b7454a61f1
create function tollbook.check_api_key(p_subject text, p_per_minute integer, p_hash bytea) returns TABLE(code text, retry_ms bigint) language plpgsql volatile security definer; -- d97d99ec44535906
create function tollbook.clock() returns timestamp with time zone language sql volatile; -- 4c502774edf949ff
create function tollbook.collect_callbacks(p_max integer) returns integer language plpgsql volatile security definer; -- 5db984a9958d9de4
create function tollbook.collect_follow_ups(p_max integer) returns integer language plpgsql volatile security definer; -- d0dccedd18fc2c10
create function tollbook.collect_payouts(p_max integer) returns integer language plpgsql volatile security definer; -- 2169982e1612d9e3
create function tollbook.collect_top_up_reversals(p_max integer) returns integer language plpgsql volatile security definer; -- 519d813048f9d91a
create function tollbook.count_attempts(p_subjects text[], p_per_minute integer[], p_per_day integer[] DEFAULT NULL::integer[], OUT retry_ms bigint, OUT is_first_refusal boolean) returns record language plpgsql volatile security definer; -- 43c21fc558e154da
create function tollbook.count_auth_failure(p_subject text, p_per_minute integer, p_counts boolean) returns boolean language plpgsql volatile security definer; -- ad743c8b3762fe23
create function tollbook.count_hit(p_subjects text[], p_today date, p_now_ms bigint, p_of_day boolean) returns void language sql volatile; -- 2b9050040724e42e
create function tollbook.create_api_key(p_account_id bigint, p_hash bytea, p_name text, p_models text[], p_cap bigint, p_expires_at timestamp with time zone, p_is_of_user boolean, p_budget bigint, p_budget_period text) returns bigint language sql volatile security definer; -- 74af3a081be11bf3
create function tollbook.create_operator_token(p_name text, p_scopes text[], p_hash bytea, p_expires_at timestamp with time zone, p_accounts text[]) returns bigint language sql volatile security definer; -- e267ed9805a20cab
create function tollbook.decide_credit(p_commands json, p_now timestamp with time zone) returns json language plpgsql volatile; -- 82230011fe1b1257
create function tollbook.end_callback(p_stream text, p_binding bytea, p_seq bigint, p_outcome text, p_failure text) returns void language sql volatile security definer; -- 82e15c50ae680a15
create function tollbook.end_exposure(p_stream text, p_failed boolean) returns void language plpgsql volatile security definer; -- d43496f5a5c79fc9
create function tollbook.end_follow_ups(p_topic text, p_seqs bigint[]) returns void language sql volatile security definer; -- 7bda88c2a5508d10
create function tollbook.end_message(p_task_id bigint) returns void language sql volatile security definer; -- bb551ebd56746611
create function tollbook.end_payout(p_stream text, p_reason text) returns void language plpgsql volatile security definer; -- d40d6b410611a5b2
create function tollbook.end_prune_round() returns TABLE(round bigint, kind text, count bigint, before timestamp with time zone) language plpgsql volatile security definer; -- a11cc764072132ce
create function tollbook.end_round(p_kind text, p_queue text, p_key text, p_round integer, p_due_ms integer, p_payload json, p_error text) returns boolean language sql volatile security definer; -- d0317d6e1db577f0
create function tollbook.erase_callbacks(p_payers text[], p_max integer) returns integer language sql volatile security definer; -- 74ca51f9dc7a8cea
create function tollbook.erase_refund_reasons(p_payers text[], p_max integer) returns integer language sql volatile security definer; -- 8021114996c42a1b
create function tollbook.erase_results(p_payers text[], p_max integer) returns integer language sql volatile security definer; -- eca7c82e054d6dd9
create function tollbook.erase_user(p_user_id uuid, p_account_id bigint, p_subjects text[]) returns boolean language plpgsql volatile security definer; -- 9e2083930617966b
create function tollbook.expose_spend(p_stream text, p_scope text, p_commitment text, p_nonce numeric, p_amount numeric, p_limit numeric, p_next_nonce numeric, p_balance numeric) returns boolean language plpgsql volatile security definer; -- c708de2d52b0ff86
create function tollbook.extend_lease(p_call_id bigint, p_lease_id uuid, p_lease_secs integer, p_max_age_secs integer DEFAULT NULL::integer) returns SETOF timestamp with time zone language sql volatile security definer; -- 5a56ba4ce2a2095b
create function tollbook.extend_log(p_lane smallint, p_origin text, p_generation integer, p_from bigint, p_size bigint, p_root bytea, p_note text) returns boolean language plpgsql volatile security definer; -- 778dea48498765ec
create function tollbook.extend_prices(p_list bytea, p_valid_secs integer) returns boolean language sql volatile security definer; -- 69f35f18456c37ca
create function tollbook.first_completion_since(p_generation integer, p_account_id bigint, p_from timestamp with time zone) returns bigint language plpgsql stable; -- 7699244adfb02d09
create function tollbook.first_payment_since(p_generation integer, p_from timestamp with time zone) returns bigint language plpgsql stable; -- 2cf716a2052ecbe3
create function tollbook.forget_gateway(p_process uuid) returns void language sql volatile security definer; -- a19078557a480904
create function tollbook.forget_prune_round(p_round bigint) returns void language sql volatile security definer; -- 31b1c022f1d79971
create function tollbook.forget_result_upload(p_call_id bigint, p_lease_id uuid) returns void language sql volatile security definer; -- 0a52b07320db172c
create function tollbook.gateway_heartbeat(p_process uuid) returns void language sql volatile security definer; -- b0cc7c3ee1b3a15a
create function tollbook.grow_tree(p_lane smallint, p_from bigint, p_size bigint, p_edge bytea) returns bytea language plpgsql volatile; -- 2ce61be95670f53b
create function tollbook.halt_ledger(p_reason text, p_known_seq bigint, p_found_seq bigint) returns void language sql volatile security definer; -- fb2ae030b369e28d
create function tollbook.heartbeat(p_process uuid, p_gap_secs double precision) returns void language sql volatile security definer; -- a961941aadde3c58
create function tollbook.hex_bytes(p_text text) returns bytea language sql immutable; -- 519950832a6d2a4e
create function tollbook.hex_text(p_bytes bytea) returns text language sql immutable; -- 256675db59869a38
create function tollbook.hold_leases(p_call_ids bigint[], p_lease_ids uuid[], p_new_lease_ids uuid[], p_services bigint[], p_lease_secs integer, p_max_age_secs integer DEFAULT NULL::integer) returns TABLE(call_id bigint, lease_id uuid, lasts_ms bigint) language sql volatile security definer; -- 081f4bc1e72d2b08
create function tollbook.is_halted() returns boolean language sql stable security definer; -- 98eb8d5221fab1ec
create function tollbook.is_head_needed(p_origin text, p_size bigint, p_at timestamp with time zone) returns boolean language sql volatile; -- e64a892ce05bd1b6
create function tollbook.is_process_silent(p_process uuid, p_by uuid, p_silent_secs double precision) returns boolean language sql volatile; -- dd6b44b5c27f8f6e
create function tollbook.is_refused(p_key bytea, p_now timestamp with time zone) returns boolean language plpgsql stable; -- 8b2a3e45b11a2d17
create function tollbook.keep_order(p_keys bytea[], p_touched bigint[], p_batch bigint) returns void language plpgsql volatile; -- f9bd02adb62299c8
create function tollbook.last_event_before(p_moment timestamp with time zone) returns bigint language plpgsql stable; -- 1da050967b086921
create function tollbook.leaf(p_event tollbook.event) returns bytea language sql stable; -- a2962511808782b0
create function tollbook.leaf_text(p_event tollbook.event) returns text language sql stable; -- 6449aabc21cf04e8
create function tollbook.lease_call(p_call_id bigint, p_lease_secs integer, p_max_age_secs integer) returns TABLE(call_id bigint, lease_id uuid, attempt integer, failures integer, stream text, service_id bigint, job_index bigint, network text, asset text, symbol text, caller text, payment text, lease_until timestamp with time zone, traceparent text) language sql volatile security definer; -- cf046be5b514ced3
create function tollbook.lease_calls(p_services bigint[], p_max integer, p_lease_secs integer, p_jobs json DEFAULT '[]'::json, p_triggered boolean DEFAULT false, p_max_age_secs integer DEFAULT NULL::integer) returns TABLE(call_id bigint, lease_id uuid, attempt integer, failures integer, stream text, service_id bigint, job_index bigint, network text, asset text, symbol text, caller text, payment text, lease_until timestamp with time zone, traceparent text, content_type text, body bytea, trigger_kind text, trigger_name text, trigger_id text) language plpgsql volatile security definer; -- 5dff7926bdbd656b
create function tollbook.lease_top_ups(p_jobs json, p_max integer, p_lease_secs integer, p_proven boolean, p_max_age_secs integer DEFAULT NULL::integer) returns TABLE(call_id bigint, lease_id uuid, attempt integer, failures integer, stream text, is_too_old boolean) language sql volatile security definer; -- 565474598146fd88
create function tollbook.least_life(p_kind text) returns interval language sql immutable; -- b7ef1d86de210153
create function tollbook.lock_prune_round() returns bigint language sql volatile; -- 86943210dde6fc23
create function tollbook.mark_holds_started(p_chats uuid[]) returns SETOF uuid language sql volatile security definer; -- ba20722ee87966f7
create function tollbook.move_credit(p_move json, p_now timestamp with time zone) returns json language plpgsql volatile; -- 53cdba6c2ce86652
create function tollbook.next_account_id() returns bigint language sql volatile security definer; -- ea19fa8d466fbc1a
create function tollbook.next_call_id() returns bigint language sql volatile security definer; -- f26fe743f2f3b50d
create function tollbook.note_first_search_block(p_seq bigint, p_block numeric) returns void language sql volatile security definer; -- f46cf0b1f1b067f8
create function tollbook.note_pruned(p_kind text, p_count bigint, p_life_secs bigint) returns void language sql volatile security definer; -- 2af6bf50fa8d5bdb
create function tollbook.note_result_part(p_call_id bigint, p_lease_id uuid, p_part integer) returns void language sql volatile security definer; -- 2900071f96f0b437
create function tollbook.note_runner_gone(p_runner text, p_call_id bigint, p_since timestamp with time zone, p_within_secs integer) returns integer language plpgsql volatile security definer; -- 535bd1fe07de64b9
create function tollbook.note_unreadable(p_seq bigint) returns void language sql volatile security definer; -- 23e7719a0110d7d2
create function tollbook.offer_prices(p_list bytea, p_valid_secs integer, p_prices json) returns void language sql volatile security definer; -- 471e28f7db8d12f0
create function tollbook.open_batch(p_lane smallint, p_sender bytea, p_batch_no bigint, p_acknowledged bigint, p_content bytea, p_commands text, OUT head tollbook.lane, OUT answer json) returns record language plpgsql volatile; -- bf48f38a3cb5dfb8
create function tollbook.open_rate_window(p_subject text, p_now timestamp with time zone, p_create boolean, OUT recent bigint[], OUT today_hits integer, OUT refused_at bigint, OUT today date, OUT now_ms bigint) returns record language plpgsql volatile; -- e82559ffbd4f402a
create function tollbook.open_user_account(p_user_id uuid) returns TABLE(account_id bigint, is_new boolean, is_recorded boolean) language plpgsql volatile security definer; -- 66e0b839be3ba915
create function tollbook.postpone_payout(p_stream text, p_delay_ms integer, p_reason text) returns void language sql volatile security definer; -- ddc702a6ef61c149
create function tollbook.postpone_unsettled(p_call_id bigint, p_delay_ms integer) returns void language sql volatile security definer; -- 40a089ca39a38959
create function tollbook.prune(p_kind text, p_life_secs bigint, p_max integer) returns integer language plpgsql volatile security definer; -- 1e93e5705bc9ee42
create function tollbook.prune_projections(p_replaced integer, p_max integer) returns integer language plpgsql volatile security definer; -- dd8d5bda146580f3
create function tollbook.prune_short_lived(p_max integer) returns integer language sql volatile security definer; -- c8df42dac4c0e33d
create function tollbook.pull_due_times(p_max integer) returns integer language sql volatile security definer; -- d5421872f4b74cb3
create function tollbook.put_bodies(p_bodies json) returns void language sql volatile security definer; -- 792da5dc24c36c85
create function tollbook.put_body(p_body_id uuid, p_content_type text, p_body bytea) returns void language sql volatile security definer; -- 68b8dcb8556c3721
create function tollbook.put_callback(p_stream text, p_binding bytea, p_url text, p_payer text) returns void language sql volatile security definer; -- e407d0409205988c
create function tollbook.put_refund_reason(p_stream text, p_payer text, p_reason text) returns void language sql volatile security definer; -- 16b0ba8e2d2bad5b
create function tollbook.put_result(p_call_id bigint, p_attempt integer, p_lease_id uuid, p_content_type text, p_body bytea, p_head text DEFAULT NULL::text) returns TABLE(sha256 text, bytes bigint) language plpgsql volatile security definer; -- c9d77048aeb0b257
create function tollbook.put_results(p_results json) returns TABLE(place bigint, sha256 text, bytes bigint) language sql volatile security definer; -- c42106620e2cbfa8
create function tollbook.put_stored_result(p_call_id bigint, p_attempt integer, p_lease_id uuid, p_content_type text, p_bytes bigint, p_sha256 bytea, p_head text DEFAULT NULL::text) returns TABLE(sha256 text, bytes bigint) language plpgsql volatile security definer; -- 6d401de2f1be894f
create function tollbook.queue_alert(p_receivers text[], p_kind text, p_subject text, p_status text, p_text text, p_details json, p_since timestamp with time zone, p_id text) returns void language plpgsql volatile security definer; -- 649b3d6b78a692f1
create function tollbook.quotes_revoked_before() returns bigint language plpgsql stable; -- adb80ddf088acba4
create function tollbook.rate_retry_ms(p_recent bigint[], p_per_minute integer, p_now_ms bigint) returns bigint language sql immutable; -- 2367230e30befd81
create function tollbook.reach_standby() returns void language sql volatile security definer; -- 67e21aeb2356135e
create function tollbook.record_anchor(p_origin text, p_name text, p_size bigint) returns void language sql volatile security definer; -- 897445d5e42039f0
create function tollbook.record_database_identity(p_system_identifier text, p_oid bigint, p_timeline integer) returns void language sql volatile security definer; -- 97737e9e6b3d503c
create function tollbook.record_key_uses(p_key_ids bigint[]) returns void language sql volatile security definer; -- 69b68ec635d70fc2
create function tollbook.record_reconciliation(p_report text) returns bigint language plpgsql volatile security definer; -- a1edc2376a4ee182
create function tollbook.refuse_change() returns trigger language plpgsql volatile; -- 0fd214a1ddf4d34e
create function tollbook.refuse_needed_head() returns trigger language plpgsql volatile; -- 6871cf5178515f34
create function tollbook.renew_round(p_kind text, p_queue text, p_key text, p_round integer, p_lease_ms integer) returns boolean language sql volatile security definer; -- dd8ece307f5f93d7
create function tollbook.report_alerts(p_process uuid, p_conditions json, p_is_complete boolean, p_receivers text[], p_repeat_secs integer, p_quiet_secs integer) returns TABLE(is_sender boolean, kind text, subject text, status text, text text) language plpgsql volatile security definer; -- c524497c3ed7dc48
create function tollbook.report_progress(p_call_id bigint, p_lease_id uuid, p_fraction double precision, p_message text, p_services bigint[] DEFAULT NULL::bigint[]) returns boolean language sql volatile security definer; -- 3953f365d20b81c5
create function tollbook.resend_payout(p_stream text, p_reason text) returns void language sql volatile security definer; -- d02a8e5e1a9d0502
create function tollbook.result_hash(p_call_id bigint, p_attempt integer) returns TABLE(sha256 text, bytes bigint) language sql stable security definer; -- 07d350c46f1c2fd0
create function tollbook.return_callback(p_stream text, p_binding bytea, p_seq bigint, p_delay_ms bigint, p_failure text) returns void language sql volatile security definer; -- b5e7bec7627e11b9
create function tollbook.return_message(p_task_id bigint) returns void language sql volatile security definer; -- 2e7ef08dd230d3e9
create function tollbook.revoke_api_key(p_key_id bigint) returns boolean language sql volatile security definer; -- 6a5586e07575b4cd
create function tollbook.revoke_operator_token(p_token_id bigint) returns boolean language sql volatile security definer; -- 9029e9979c3726f3
create function tollbook.root_of_edge(p_edge bytea) returns bytea language plpgsql immutable; -- bf972522a342c28d
create function tollbook.schedule_anchor(p_origin text, p_name text, p_ms integer) returns void language sql volatile security definer; -- 924f8fb279b6c825
create function tollbook.set_account_disabled(p_account_id bigint, p_is_disabled boolean) returns boolean language sql volatile security definer; -- 91c31442086c04be
create function tollbook.set_account_webhook(p_account_id bigint, p_url text, p_secret text) returns void language plpgsql volatile security definer; -- 7f3daa521edb684b
create function tollbook.settle_chat(p_move json, p_now timestamp with time zone) returns json language plpgsql volatile; -- bab3a5b0293aa74a
create function tollbook.settle_uncontended(p_settled text, p_now timestamp with time zone) returns void language plpgsql volatile; -- 67de5ad303596251
create function tollbook.stream_key(p_stream text) returns bytea language sql stable; -- 00399cb91698480e
create function tollbook.stream_name(p_key bytea) returns text language sql stable; -- 80e2016f7d22b3ba
create function tollbook.sweep_batches() returns void language plpgsql volatile; -- c12d5539447cb4af
create function tollbook.take_anchor(p_origin text, p_name text, p_every_ms integer) returns TABLE(size bigint, note text) language sql volatile security definer; -- 0b2d413b779d98f5
create function tollbook.take_budget_messages(p_channel text, p_max integer) returns TABLE(message_id bigint, account_id bigint, account text, key_id bigint, key_name text, percent integer, used bigint, budget bigint, budget_period text, budget_from date, until timestamp with time zone, tries integer, url text, secret text, created_at timestamp with time zone) language sql volatile security definer; -- 6799af411b82b152
create function tollbook.take_callbacks(p_max integer, p_busy text[]) returns TABLE(stream text, binding bytea, url text, seq bigint, tries integer, age_secs double precision, payer text) language sql volatile security definer; -- c784bf138c5ea84a
create function tollbook.take_event_allowance(p_kind text, p_wanted integer, p_per_sec integer, p_most integer) returns integer language plpgsql volatile security definer; -- 419e18db892e9cd1
create function tollbook.take_final_settlements(p_network text, p_finalized numeric, p_max integer) returns TABLE(seq bigint, stream text, block_number numeric, block_hash text) language sql volatile security definer; -- 1dbbb75069675038
create function tollbook.take_follow_ups(p_topic text, p_network text, p_max integer) returns TABLE(seq bigint, stream text, tries integer, first_search_block numeric, age_secs double precision) language sql volatile security definer; -- a28a3eb4dcae68fd
create function tollbook.take_messages(p_kind text, p_queue text, p_max integer, p_lease_ms integer) returns TABLE(task_id bigint, payload json, tries integer, created_at timestamp with time zone) language sql volatile security definer; -- c974b2a9a4e006e3
create function tollbook.take_new_payouts(p_max integer, p_lease_secs integer) returns TABLE(stream text, attempts integer) language sql volatile security definer; -- 129719c290b8c243
create function tollbook.take_old_calls(p_except json, p_max integer, p_max_age_secs integer, p_lease_secs integer) returns TABLE(call_id bigint, lease_id uuid, attempt integer, failures integer, stream text, service_id bigint, job_index bigint) language sql volatile security definer; -- f77817fd5df6c9be
create function tollbook.take_sent_payouts(p_max integer, p_lease_secs integer) returns TABLE(stream text, attempts integer, transaction text, checks integer) language sql volatile security definer; -- adbe6b1463b377c1
create function tollbook.take_unrepeated_calls(p_jobs json, p_max integer, p_lease_secs integer) returns TABLE(call_id bigint, lease_id uuid, attempt integer, failures integer, stream text, service_id bigint, job_index bigint, left_by_client boolean) language sql volatile security definer; -- f280022b57446b3f
create function tollbook.take_unsettled(p_max integer) returns TABLE(call_id bigint, stream text, status text, payment text, attempt integer, age_secs double precision, traceparent text) language sql volatile security definer; -- c4f3fd035007a23f
create function tollbook.tell_budgets(p_keys bigint[], p_is_refused boolean, p_now timestamp with time zone) returns void language sql volatile; -- a8d42ad4108d05ce
create function tollbook.unused_result_uploads(p_max integer) returns TABLE(call_id bigint, lease_id uuid, parts integer) language sql stable security definer; -- 1080e1648810b9f3
create function tollbook.watch_payout(p_stream text, p_transaction text, p_delay_ms integer) returns void language sql volatile security definer; -- 523d1e25bc633d89
create function tollbook.whole_number(p_text text) returns numeric language sql immutable; -- e5d972ffcfd38e58
create function tollbook.worker_heartbeat(p_process uuid) returns void language sql volatile security definer; -- bb7c6b59113e9890

create view audit.as_of with (security_invoker=true); -- How far audit.payment, audit.call, audit.posting and audit.balance have come. They follow the events within moments while a gateway runs. One row.
--   seq bigint: The last event that they contain.
--   last_seq bigint: The last event of the ledger.
--   updated_at timestamp with time zone: When they were written last.
create view audit.balance with (security_invoker=true); -- What was posted to each account on each day, and its balance at the end of that day. The sums of audit.posting. A day without postings to an account has no row: the balance is that of the last day before.
--   day date: The day (UTC) on which the events were recorded.
--   account text: An account of audit.posting.
--   commodity text: What is counted, as in audit.posting.
--   network text: The commodity's chain. Null: credit.
--   asset text: The token's contract. Null: credit, or the chain's own coin.
--   decimals integer: Those of the commodity.
--   debit_atoms numeric: What was added on that day, in the smallest unit.
--   credit_atoms numeric: What was taken on that day.
--   closing_atoms numeric: All that was added less all that was taken up to the end of that day. Liabilities and income are below 0.
--   debit numeric: What was added on that day, in tokens or units of the currency.
--   credit numeric: What was taken on that day, in the same.
--   closing numeric: The balance at the end of that day, in the same.
--   derived_to bigint: The last event that the balances contain.
create view audit.call with (security_invoker=true); -- Every call that a payment paid for. A read model, as audit.payment. Calls of triggers are the events call_triggered.
--   call_id bigint: Its number.
--   payment_seq bigint: Its payment: seq in audit.payment.
--   quote text: The stream of its events and of its payment's.
--   service_id bigint: Of its job.
--   job_index bigint: Of its job.
--   status text: enqueued, delivered (a runner has it), completed or dead_lettered.
--   attempts integer: How often a runner has got it.
--   enqueued_at timestamp with time zone: When its payment was settled and it was released.
--   ended_at timestamp with time zone: When it was completed or dead-lettered. Null: it was not.
create view audit.caller_nonce with (security_invoker=true); -- The nonces that callers of restricted jobs have used, each once for a job. A nonce is free again once its payment can never land.
--   caller text: The address that signed the request.
--   service_id bigint: Of the job that it called.
--   job_index bigint: Of the job that it called.
--   nonce_sha256 text: 0x and the SHA-256 of the nonce, whose text the ledger does not keep.
--   quote text: The quote whose payment has used it.
--   used_at timestamp with time zone: When that payment was started.
create view audit.event with (security_invoker=true); -- Every event. Narrow it by seq or at, which have indexes; for one stream ask audit.events_of.
--   seq bigint: Its number in the ledger: from 1, without gaps.
--   at timestamp with time zone: When it was recorded, by the database's clock. It never goes back.
--   stream text: What it is about: the digest of a quote (0x and 64 digits), or another name such as account:7.
--   version integer: Its number in its stream: from 1, without gaps.
--   type text: What has happened.
--   data jsonb: The facts. {"unreadable": TEXT} where jsonb cannot hold them: an escaped U+0000 or half of a surrogate pair.
create view audit.payment with (security_invoker=true); -- Every payment that was started or recovered, in its present state. A read model: it follows the events within moments, and audit.as_of says up to which.
--   seq bigint: The event that started or recovered it: settlement_started or payment_recovered.
--   at timestamp with time zone: When that was recorded.
--   quote text: The stream of its events: the digest of its quote, which is the invoice number; of a recovered payment the hash of its fingerprint.
--   quote_source text: pricing: the pricing service issued the quote. Null: a 402 answer did, or the quote is lost.
--   service_id bigint: Of the job that was paid for. Null: a recovered payment without a job.
--   job_index bigint: Of the job that was paid for.
--   network text: The chain, such as eip155:8453.
--   asset text: The token's contract.
--   symbol text: The token's name.
--   amount_atoms numeric: In atoms, the token's smallest unit.
--   amount numeric: In tokens, with all their decimals.
--   payer text: Whose tokens paid.
--   pay_to text: The operator's address that got them.
--   state text: authorized, settling, settlement_unknown, settlement_failed or settled; once its call is enqueued enqueued, delivered (a runner has it), completed or dead_lettered; refunded once all of it was given back.
--   settled_at timestamp with time zone: When the settlement was recorded. Null: it is not settled.
--   transaction text: The transaction of its transfer.
--   block_number numeric: The block that has the transfer. Null: only the facilitator reported it so far.
--   call_id bigint: The call that it paid for, in audit.call.
--   delivered_at timestamp with time zone: When the call was completed. Null: it was not.
--   refund_due text: Why money is owed to the payer. Null: none is.
--   refund_due_since timestamp with time zone: Since when.
--   refund_requested_at timestamp with time zone: When its payer asked for its money, while an operator has that to decide or to pay.
--   refund_started_at timestamp with time zone: When an operator started a refund that has not ended.
--   refunded_at timestamp with time zone: When the last refund was recorded.
--   refund_transaction text: The transaction of that refund.
--   refunded_atoms numeric: How much of it was given back, in atoms.
--   refunded numeric: The same in tokens.
--   last_seq bigint: The last event that changed it.
create view audit.posting with (security_invoker=true); -- Double-entry postings: an amount on the debit side of one account and the credit side of another. A read model, as audit.payment. Those of a payment: join audit.events_of by seq. Empty after an upgrade from a version without postings or open items, until a gateway has built them.
--   seq bigint: The event that caused it.
--   leg smallint: Its number among the postings of that event, from 1.
--   at timestamp with time zone: When that event was recorded.
--   type text: The event's type.
--   category text: What it is, as in the exports: payment, confirmation, delivery, refund, credit_use and others.
--   debit text: The account that it is added to.
--   credit text: The account that it is taken from.
--   commodity text: What is counted, by its name in the journals, such as USDC-8453, or the currency of credit; CREDIT while no event has said that.
--   network text: The commodity's chain. Null: credit.
--   asset text: The token's contract. Null: credit, or the chain's own coin.
--   decimals integer: Those of the commodity; credit has 6.
--   atoms numeric: How much, above 0, in the smallest unit.
--   amount numeric: The same in tokens, or in units of the currency.
--   quote text: The payment that it is about: the stream of its events, as in audit.payment. Null: about no payment.
--   counterparty text: Who the other party is: a payer, who got a refund or a sweep, who sent a transfer, a credit account such as account:7, or the account of a spend. Null: gas.
--   derived_to bigint: The last event that the postings contain.
create view audit.quote with (security_invoker=true); -- Every quote that is on record with its terms. Unpaid quotes may be only counted, by the events quotes_issued.
--   seq bigint: Its event.
--   at timestamp with time zone: When it was recorded: if it was only counted before, when it was paid.
--   quote text: Its digest, which names its stream.
--   service_id bigint: Of its job.
--   job_index bigint: Of its job.
--   price_wei numeric: The job's price, in units of 10^-18.
--   options jsonb: The ways to pay it, in their order: network, asset, symbol, decimals, amount in atoms, pay_to, and for credit credit_micros. An option that was not known when the quote was recorded is its hash.
--   requester text: The only address that may pay it. Null: any may.
--   inputs_hash text: The hash of the only body that it is for. Null: it is for any.
--   issued_at timestamp with time zone: When it was issued.
--   expires_at timestamp with time zone: Until when it could be paid.
--   source text: pricing: the pricing service issued it. Null: a 402 answer did.
--   was_counted boolean: A quotes_issued counted it before it was recorded.
create view audit.refusal with (security_invoker=true); -- Refused requests that are on record. Nothing was charged for them. Trials (dry_run_…) and sign-ins are only in audit.event.
--   seq bigint: Its event.
--   at timestamp with time zone: When it was recorded.
--   type text: payment_rejected, request_refused, auth_denied, payment_replay_denied, nonce_replay_denied, enqueue_failed or chat_refused.
--   requests bigint: 1. More, and nothing but the type: refusals of one second that were only counted, because a client was over its budget, the ledger full, or strangers beyond their allowance.
--   reason text: Why: a code. Of payment_replay_denied what was used before: payment, quote or payment_identifier. Null for nonce_replay_denied.
--   service_id bigint: Of the job.
--   job_index bigint: Of the job.
--   caller text: Who asked: the address of a restricted job's caller; of chat_refused api_key, session, spend_auth, x402 or anonymous.
--   nonce_sha256 text: Of nonce_replay_denied: 0x and the SHA-256 of the nonce that was used before.
--   used_by_quote text: The quote whose payment has used that nonce. Null if an earlier version recorded it: audit.caller_nonce has it.
--   payer text: Whose payment was refused.
--   payment_nonce text: Of the payment that was refused.
--   quote text: The quote that the refused request named.
--   account_id bigint: Of chat_refused: whose credit.
create view audit.settlement with (security_invoker=true); -- Every step of every settlement, from the events.
--   seq bigint: Its event.
--   at timestamp with time zone: When it was recorded.
--   quote text: The stream of the payment's events, as in audit.payment.
--   type text: settlement_started; payment_settled; settlement_confirmed: the chain shows what a facilitator had reported; settlement_unknown; settlement_failed; settlement_disproved and settlement_reorged: it is unknown again; settlement_overdue; operator_settlement_resolved; payment_recovered: found on the chain without a call.
--   network text: The chain.
--   asset text: The token's contract.
--   symbol text: The token's name.
--   amount_atoms numeric: The payment's amount in atoms.
--   amount numeric: The same in tokens.
--   payer text: Whose tokens pay.
--   pay_to text: The operator's address that gets them.
--   payment_nonce text: Of the payer's authorization, which the chain accepts once.
--   transaction text: The transaction, if the event names one.
--   block_number numeric: The block that has it, if the event names one.
--   block_hash text: Of that block.
--   log_index bigint: The transfer's place in that block.
--   block_time timestamp with time zone: The time of that block, if the node told it.
--   reason text: Why it failed or is unknown: a code.
--   evidence text: Of payment_settled who says so: facilitator, chain or operator. Of operator_settlement_resolved what the operator wrote.
--   paid boolean: Of operator_settlement_resolved: what the operator decided.
--   operator text: Of operator_settlement_resolved: who.

grant execute on function audit.events_of(text) to tollbook_reader;
grant execute on function audit.is_readable(text) to tollbook_reader;
grant execute on function audit.json_of(text) to tollbook_reader;
grant execute on function audit.payments_by(text) to tollbook_reader;
grant execute on function audit.time_of(bigint) to tollbook_reader;
grant execute on function audit.tokens(numeric,integer) to tollbook_reader;
grant execute on function identity.is_admin(text) to tollbook_writer;
grant execute on function identity.link_wallet(text,bigint,uuid) to tollbook_writer;
grant execute on function identity.take_guess(uuid,text[],integer[]) to tollbook_writer;
grant execute on function identity.take_role(text,text,boolean) to tollbook_writer;
grant execute on function identity.unlink_wallet(text,uuid,text[]) to tollbook_writer;
grant execute on function identity.user_of_wallet(text,bigint,uuid,text,text) to tollbook_writer;
grant execute on function tollbook.activate_projection(integer) to tollbook_writer;
grant execute on function tollbook.append(smallint,uuid,bigint,bigint,json) to tollbook_writer;
grant execute on function tollbook.append_uncontended(smallint,uuid,bigint,bigint,bytea,text,text,text,text,text,text,text,text,text,text,text,text,text,text,text,text,text) to tollbook_writer;
grant execute on function tollbook.apply_projection(integer,bigint,bigint,json,json,json,json,json,json) to tollbook_writer;
grant execute on function tollbook.begin_projection() to tollbook_writer;
grant execute on function tollbook.begin_prune_round(integer) to tollbook_writer;
grant execute on function tollbook.begin_round(text,text,text,integer) to tollbook_writer;
grant execute on function tollbook.body_hash(uuid) to tollbook_reader;
grant execute on function tollbook.body_hash(uuid) to tollbook_writer;
grant execute on function tollbook.budget_end(text,date) to tollbook_writer;
grant execute on function tollbook.budget_start(text,date,timestamp with time zone) to tollbook_writer;
grant execute on function tollbook.check_api_key(text,integer,bytea) to tollbook_writer;
grant execute on function tollbook.clock() to tollbook_reader;
grant execute on function tollbook.clock() to tollbook_writer;
grant execute on function tollbook.collect_callbacks(integer) to tollbook_writer;
grant execute on function tollbook.collect_follow_ups(integer) to tollbook_writer;
grant execute on function tollbook.collect_payouts(integer) to tollbook_writer;
grant execute on function tollbook.collect_top_up_reversals(integer) to tollbook_writer;
grant execute on function tollbook.count_attempts(text[],integer[],integer[]) to tollbook_writer;
grant execute on function tollbook.count_auth_failure(text,integer,boolean) to tollbook_writer;
grant execute on function tollbook.create_api_key(bigint,bytea,text,text[],bigint,timestamp with time zone,boolean,bigint,text) to tollbook_writer;
grant execute on function tollbook.create_operator_token(text,text[],bytea,timestamp with time zone,text[]) to tollbook_writer;
grant execute on function tollbook.end_callback(text,bytea,bigint,text,text) to tollbook_writer;
grant execute on function tollbook.end_exposure(text,boolean) to tollbook_writer;
grant execute on function tollbook.end_follow_ups(text,bigint[]) to tollbook_writer;
grant execute on function tollbook.end_message(bigint) to tollbook_writer;
grant execute on function tollbook.end_payout(text,text) to tollbook_writer;
grant execute on function tollbook.end_prune_round() to tollbook_writer;
grant execute on function tollbook.end_round(text,text,text,integer,integer,json,text) to tollbook_writer;
grant execute on function tollbook.erase_callbacks(text[],integer) to tollbook_writer;
grant execute on function tollbook.erase_refund_reasons(text[],integer) to tollbook_writer;
grant execute on function tollbook.erase_results(text[],integer) to tollbook_writer;
grant execute on function tollbook.erase_user(uuid,bigint,text[]) to tollbook_writer;
grant execute on function tollbook.expose_spend(text,text,text,numeric,numeric,numeric,numeric,numeric) to tollbook_writer;
grant execute on function tollbook.extend_lease(bigint,uuid,integer,integer) to tollbook_writer;
grant execute on function tollbook.extend_log(smallint,text,integer,bigint,bigint,bytea,text) to tollbook_writer;
grant execute on function tollbook.extend_prices(bytea,integer) to tollbook_writer;
grant execute on function tollbook.first_completion_since(integer,bigint,timestamp with time zone) to tollbook_reader;
grant execute on function tollbook.first_completion_since(integer,bigint,timestamp with time zone) to tollbook_writer;
grant execute on function tollbook.first_payment_since(integer,timestamp with time zone) to tollbook_reader;
grant execute on function tollbook.first_payment_since(integer,timestamp with time zone) to tollbook_writer;
grant execute on function tollbook.forget_gateway(uuid) to tollbook_writer;
grant execute on function tollbook.forget_prune_round(bigint) to tollbook_writer;
grant execute on function tollbook.forget_result_upload(bigint,uuid) to tollbook_writer;
grant execute on function tollbook.gateway_heartbeat(uuid) to tollbook_writer;
grant execute on function tollbook.halt_ledger(text,bigint,bigint) to tollbook_writer;
grant execute on function tollbook.heartbeat(uuid,double precision) to tollbook_writer;
grant execute on function tollbook.hex_bytes(text) to tollbook_reader;
grant execute on function tollbook.hex_bytes(text) to tollbook_writer;
grant execute on function tollbook.hex_text(bytea) to tollbook_reader;
grant execute on function tollbook.hex_text(bytea) to tollbook_writer;
grant execute on function tollbook.hold_leases(bigint[],uuid[],uuid[],bigint[],integer,integer) to tollbook_writer;
grant execute on function tollbook.is_halted() to tollbook_writer;
grant execute on function tollbook.is_process_silent(uuid,uuid,double precision) to tollbook_writer;
grant execute on function tollbook.last_event_before(timestamp with time zone) to tollbook_reader;
grant execute on function tollbook.last_event_before(timestamp with time zone) to tollbook_writer;
grant execute on function tollbook.leaf(tollbook.event) to tollbook_reader;
grant execute on function tollbook.leaf(tollbook.event) to tollbook_writer;
grant execute on function tollbook.leaf_text(tollbook.event) to tollbook_reader;
grant execute on function tollbook.leaf_text(tollbook.event) to tollbook_writer;
grant execute on function tollbook.lease_call(bigint,integer,integer) to tollbook_writer;
grant execute on function tollbook.lease_calls(bigint[],integer,integer,json,boolean,integer) to tollbook_writer;
grant execute on function tollbook.lease_top_ups(json,integer,integer,boolean,integer) to tollbook_writer;
grant execute on function tollbook.mark_holds_started(uuid[]) to tollbook_writer;
grant execute on function tollbook.next_account_id() to tollbook_writer;
grant execute on function tollbook.next_call_id() to tollbook_writer;
grant execute on function tollbook.note_first_search_block(bigint,numeric) to tollbook_writer;
grant execute on function tollbook.note_pruned(text,bigint,bigint) to tollbook_writer;
grant execute on function tollbook.note_result_part(bigint,uuid,integer) to tollbook_writer;
grant execute on function tollbook.note_runner_gone(text,bigint,timestamp with time zone,integer) to tollbook_writer;
grant execute on function tollbook.note_unreadable(bigint) to tollbook_writer;
grant execute on function tollbook.offer_prices(bytea,integer,json) to tollbook_writer;
grant execute on function tollbook.open_user_account(uuid) to tollbook_writer;
grant execute on function tollbook.postpone_payout(text,integer,text) to tollbook_writer;
grant execute on function tollbook.postpone_unsettled(bigint,integer) to tollbook_writer;
grant execute on function tollbook.prune(text,bigint,integer) to tollbook_writer;
grant execute on function tollbook.prune_projections(integer,integer) to tollbook_writer;
grant execute on function tollbook.prune_short_lived(integer) to tollbook_writer;
grant execute on function tollbook.pull_due_times(integer) to tollbook_writer;
grant execute on function tollbook.put_bodies(json) to tollbook_writer;
grant execute on function tollbook.put_body(uuid,text,bytea) to tollbook_writer;
grant execute on function tollbook.put_callback(text,bytea,text,text) to tollbook_writer;
grant execute on function tollbook.put_refund_reason(text,text,text) to tollbook_writer;
grant execute on function tollbook.put_result(bigint,integer,uuid,text,bytea,text) to tollbook_writer;
grant execute on function tollbook.put_results(json) to tollbook_writer;
grant execute on function tollbook.put_stored_result(bigint,integer,uuid,text,bigint,bytea,text) to tollbook_writer;
grant execute on function tollbook.queue_alert(text[],text,text,text,text,json,timestamp with time zone,text) to tollbook_writer;
grant execute on function tollbook.quotes_revoked_before() to tollbook_writer;
grant execute on function tollbook.reach_standby() to tollbook_writer;
grant execute on function tollbook.record_anchor(text,text,bigint) to tollbook_writer;
grant execute on function tollbook.record_database_identity(text,bigint,integer) to tollbook_writer;
grant execute on function tollbook.record_key_uses(bigint[]) to tollbook_writer;
grant execute on function tollbook.record_reconciliation(text) to tollbook_writer;
grant execute on function tollbook.renew_round(text,text,text,integer,integer) to tollbook_writer;
grant execute on function tollbook.report_alerts(uuid,json,boolean,text[],integer,integer) to tollbook_writer;
grant execute on function tollbook.report_progress(bigint,uuid,double precision,text,bigint[]) to tollbook_writer;
grant execute on function tollbook.resend_payout(text,text) to tollbook_writer;
grant execute on function tollbook.result_hash(bigint,integer) to tollbook_reader;
grant execute on function tollbook.result_hash(bigint,integer) to tollbook_writer;
grant execute on function tollbook.return_callback(text,bytea,bigint,bigint,text) to tollbook_writer;
grant execute on function tollbook.return_message(bigint) to tollbook_writer;
grant execute on function tollbook.revoke_api_key(bigint) to tollbook_writer;
grant execute on function tollbook.revoke_operator_token(bigint) to tollbook_writer;
grant execute on function tollbook.schedule_anchor(text,text,integer) to tollbook_writer;
grant execute on function tollbook.set_account_disabled(bigint,boolean) to tollbook_writer;
grant execute on function tollbook.set_account_webhook(bigint,text,text) to tollbook_writer;
grant execute on function tollbook.stream_key(text) to tollbook_reader;
grant execute on function tollbook.stream_key(text) to tollbook_writer;
grant execute on function tollbook.stream_name(bytea) to tollbook_reader;
grant execute on function tollbook.stream_name(bytea) to tollbook_writer;
grant execute on function tollbook.take_anchor(text,text,integer) to tollbook_writer;
grant execute on function tollbook.take_budget_messages(text,integer) to tollbook_writer;
grant execute on function tollbook.take_callbacks(integer,text[]) to tollbook_writer;
grant execute on function tollbook.take_event_allowance(text,integer,integer,integer) to tollbook_writer;
grant execute on function tollbook.take_final_settlements(text,numeric,integer) to tollbook_writer;
grant execute on function tollbook.take_follow_ups(text,text,integer) to tollbook_writer;
grant execute on function tollbook.take_messages(text,text,integer,integer) to tollbook_writer;
grant execute on function tollbook.take_new_payouts(integer,integer) to tollbook_writer;
grant execute on function tollbook.take_old_calls(json,integer,integer,integer) to tollbook_writer;
grant execute on function tollbook.take_sent_payouts(integer,integer) to tollbook_writer;
grant execute on function tollbook.take_unrepeated_calls(json,integer,integer) to tollbook_writer;
grant execute on function tollbook.take_unsettled(integer) to tollbook_writer;
grant execute on function tollbook.unused_result_uploads(integer) to tollbook_writer;
grant execute on function tollbook.watch_payout(text,text,integer) to tollbook_writer;
grant execute on function tollbook.worker_heartbeat(uuid) to tollbook_writer;
grant usage on schema audit to tollbook_reader;
grant usage on schema identity to tollbook_reader;
grant usage on schema identity to tollbook_writer;
grant usage on schema tollbook to tollbook_reader;
grant usage on schema tollbook to tollbook_writer;
grant select on table audit.as_of to tollbook_reader;
grant select on table audit.balance to tollbook_reader;
grant select on table audit.call to tollbook_reader;
grant select on table audit.caller_nonce to tollbook_reader;
grant select on table audit.event to tollbook_reader;
grant select on table audit.payment to tollbook_reader;
grant select on table audit.posting to tollbook_reader;
grant select on table audit.quote to tollbook_reader;
grant select on table audit.refusal to tollbook_reader;
grant select on table audit.settlement to tollbook_reader;
grant delete, insert, select, update on table identity."user" to tollbook_writer;
grant delete, insert, select, update on table identity.credential to tollbook_writer;
grant delete, insert, select, update on table identity.factor_guess to tollbook_writer;
grant delete, insert, select, update on table identity.operator to tollbook_writer;
grant delete, insert, select, update on table identity.operator_factor to tollbook_writer;
grant delete, insert, select, update on table identity.operator_invitation to tollbook_writer;
grant delete, insert, select, update on table identity.operator_recovery_code to tollbook_writer;
grant delete, insert, select, update on table identity.operator_session to tollbook_writer;
grant delete, insert, select, update on table identity.session to tollbook_writer;
grant delete, insert, select, update on table identity.siwe_nonce to tollbook_writer;
grant delete, insert, select, update on table identity.verification to tollbook_writer;
grant delete, insert, select, update on table identity.wallet to tollbook_writer;
grant select on table tollbook.account to tollbook_reader;
grant select on table tollbook.account to tollbook_writer;
grant select on table tollbook.account_credit to tollbook_reader;
grant select on table tollbook.account_credit to tollbook_writer;
grant select on table tollbook.account_webhook to tollbook_writer;
grant select on table tollbook.alert to tollbook_reader;
grant select on table tollbook.alert to tollbook_writer;
grant select on table tollbook.alert_sender to tollbook_reader;
grant select on table tollbook.alert_sender to tollbook_writer;
grant select on table tollbook.api_key to tollbook_writer;
grant select on table tollbook.balance_day to tollbook_reader;
grant select on table tollbook.balance_day to tollbook_writer;
grant select on table tollbook.book_account to tollbook_reader;
grant select on table tollbook.book_account to tollbook_writer;
grant select on table tollbook.book_commodity to tollbook_reader;
grant select on table tollbook.book_commodity to tollbook_writer;
grant select on table tollbook.book_credit to tollbook_reader;
grant select on table tollbook.book_credit to tollbook_writer;
grant select on table tollbook.book_payee to tollbook_reader;
grant select on table tollbook.book_payee to tollbook_writer;
grant select on table tollbook.call to tollbook_reader;
grant select on table tollbook.call to tollbook_writer;
grant select on table tollbook.call_body to tollbook_writer;
grant select on table tollbook.call_progress to tollbook_reader;
grant select on table tollbook.call_progress to tollbook_writer;
grant select on table tollbook.call_result to tollbook_writer;
grant select on table tollbook.callback to tollbook_writer;
grant select on table tollbook.caller_nonce to tollbook_reader;
grant select on table tollbook.caller_nonce to tollbook_writer;
grant select on table tollbook.chat_hold to tollbook_reader;
grant select on table tollbook.chat_hold to tollbook_writer;
grant select on table tollbook.claim to tollbook_reader;
grant select on table tollbook.claim to tollbook_writer;
grant select on table tollbook.completion to tollbook_reader;
grant select on table tollbook.completion to tollbook_writer;
grant select on table tollbook.credit_request to tollbook_reader;
grant select on table tollbook.credit_request to tollbook_writer;
grant select on table tollbook.database_identity to tollbook_reader;
grant select on table tollbook.database_identity to tollbook_writer;
grant select on table tollbook.deleted_result to tollbook_reader;
grant select on table tollbook.deleted_result to tollbook_writer;
grant select on table tollbook.event to tollbook_reader;
grant select on table tollbook.event to tollbook_writer;
grant select on table tollbook.event_allowance to tollbook_reader;
grant select on table tollbook.event_allowance to tollbook_writer;
grant select on table tollbook.follow_up to tollbook_reader;
grant select on table tollbook.follow_up to tollbook_writer;
grant select on table tollbook.function_file to tollbook_reader;
grant select on table tollbook.function_file to tollbook_writer;
grant select on table tollbook.gateway_process to tollbook_reader;
grant select on table tollbook.gateway_process to tollbook_writer;
grant select on table tollbook.job_day to tollbook_reader;
grant select on table tollbook.job_day to tollbook_writer;
grant select on table tollbook.lane to tollbook_reader;
grant select on table tollbook.lane to tollbook_writer;
grant select on table tollbook.lane_batch to tollbook_writer;
grant select on table tollbook.lane_counter to tollbook_reader;
grant select on table tollbook.lane_counter to tollbook_writer;
grant select on table tollbook.lane_lock to tollbook_reader;
grant select on table tollbook.lane_lock to tollbook_writer;
grant select on table tollbook.ledger_cursor to tollbook_reader;
grant select on table tollbook.ledger_cursor to tollbook_writer;
grant select on table tollbook.log_anchor to tollbook_reader;
grant select on table tollbook.log_anchor to tollbook_writer;
grant select on table tollbook.log_anchored_head to tollbook_reader;
grant select on table tollbook.log_anchored_head to tollbook_writer;
grant select on table tollbook.log_head to tollbook_reader;
grant select on table tollbook.log_head to tollbook_writer;
grant select on table tollbook.log_tile to tollbook_reader;
grant select on table tollbook.log_tile to tollbook_writer;
grant select on table tollbook.log_tree to tollbook_reader;
grant select on table tollbook.log_tree to tollbook_writer;
grant select on table tollbook.open_item to tollbook_reader;
grant select on table tollbook.open_item to tollbook_writer;
grant select on table tollbook.operator_token to tollbook_writer;
grant select on table tollbook.paid_call to tollbook_reader;
grant select on table tollbook.paid_call to tollbook_writer;
grant select on table tollbook.payee to tollbook_reader;
grant select on table tollbook.payee to tollbook_writer;
grant select on table tollbook.payment to tollbook_reader;
grant select on table tollbook.payment to tollbook_writer;
grant select on table tollbook.payout to tollbook_reader;
grant select on table tollbook.payout to tollbook_writer;
grant select on table tollbook.posting to tollbook_reader;
grant select on table tollbook.posting to tollbook_writer;
grant select on table tollbook.price_list to tollbook_reader;
grant select on table tollbook.price_list to tollbook_writer;
grant select on table tollbook.price_window to tollbook_reader;
grant select on table tollbook.price_window to tollbook_writer;
grant select on table tollbook.process to tollbook_reader;
grant select on table tollbook.process to tollbook_writer;
grant select on table tollbook.projection to tollbook_reader;
grant select on table tollbook.projection to tollbook_writer;
grant select on table tollbook.prune_sum to tollbook_reader;
grant select on table tollbook.prune_sum to tollbook_writer;
grant select on table tollbook.rate_window to tollbook_reader;
grant select on table tollbook.rate_window to tollbook_writer;
grant select on table tollbook.reconciliation to tollbook_reader;
grant select on table tollbook.reconciliation to tollbook_writer;
grant select on table tollbook.recovered_chat to tollbook_reader;
grant select on table tollbook.recovered_chat to tollbook_writer;
grant select on table tollbook.refund_reason to tollbook_reader;
grant select on table tollbook.refund_reason to tollbook_writer;
grant select on table tollbook.refused_request to tollbook_reader;
grant select on table tollbook.refused_request to tollbook_writer;
grant select on table tollbook.result_upload to tollbook_reader;
grant select on table tollbook.result_upload to tollbook_writer;
grant select on table tollbook.runner_gone to tollbook_reader;
grant select on table tollbook.runner_gone to tollbook_writer;
grant select on table tollbook.secret to tollbook_writer;
grant select on table tollbook.spend_exposure to tollbook_reader;
grant select on table tollbook.spend_exposure to tollbook_writer;
grant select on table tollbook.task to tollbook_reader;
grant select on table tollbook.task to tollbook_writer;
grant select on table tollbook.usage_day to tollbook_reader;
grant select on table tollbook.usage_day to tollbook_writer;
grant select on table tollbook.worker_process to tollbook_reader;
grant select on table tollbook.worker_process to tollbook_writer;
