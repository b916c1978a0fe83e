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
