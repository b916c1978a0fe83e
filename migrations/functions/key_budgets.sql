-- The first day of the period of a key's budget at p_now; null without a budget. A clock that was set back over midnight by less than
-- a day goes on with the period that had begun: else the key would have its budget twice.
create or replace function tollbook.budget_start(p_period text, p_known date, p_now timestamptz) returns date
language sql immutable as $$
  select case when p_known = date_trunc(p_period, (p_now + interval '1 day') at time zone 'UTC')::date then p_known
    else date_trunc(p_period, p_now at time zone 'UTC')::date end
$$;

-- When the period that begins on p_start ends, and the budget starts anew.
create or replace function tollbook.budget_end(p_period text, p_start date) returns timestamptz
language sql immutable as $$
  select (p_start + ('1 ' || p_period)::interval) at time zone 'UTC'
$$;

grant execute on function tollbook.budget_start, tollbook.budget_end to tollbook_writer;
