-- Begins the next round of a token's rate, if it is due: no other gateway begins one for p_lease_ms. No row where it is not due.
create or replace function tollbook.begin_rate_round(p_network text, p_asset text, p_terms bytea, p_lease_ms int)
returns table (round bigint, rate text, observed_at timestamptz, valid_until timestamptz, recorded text)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  insert into rate_round as known (network, asset, terms, round, begun_at, due_at, answers)
  select p_network, p_asset, p_terms, 1, now, now + p_lease_ms * interval '1 millisecond', '[]' from clock() as now
  on conflict (network, asset, terms) do update
    set round = known.round + 1, begun_at = excluded.begun_at, due_at = excluded.due_at
    -- a round of the future is from before the clock went back
    where known.due_at <= excluded.begun_at or known.begun_at > excluded.begun_at
  returning known.round, known.rate, known.observed_at, known.valid_until, known.recorded
$$;

-- Ends a round. False where another gateway has begun the next one meanwhile: then nothing changes. Rounds of configurations that
-- nobody has asked about for a week are deleted.
create or replace function tollbook.end_rate_round(p_network text, p_asset text, p_terms bytea, p_round bigint, p_due_ms int,
  p_rate text, p_observed_at timestamptz, p_valid_until timestamptz, p_recorded text, p_problem text, p_answers json) returns boolean
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from rate_round where network = p_network and asset = p_asset and begun_at < clock() - interval '7 days';
  with ended as (
    update rate_round set due_at = clock() + p_due_ms * interval '1 millisecond', rate = p_rate, observed_at = p_observed_at,
      valid_until = p_valid_until, recorded = p_recorded, problem = p_problem, answers = p_answers
    where network = p_network and asset = p_asset and terms = p_terms and round = p_round returning 1)
  select exists (select from ended)
$$;

grant execute on function tollbook.begin_rate_round, tollbook.end_rate_round to tollbook_writer;
