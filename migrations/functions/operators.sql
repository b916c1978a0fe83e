-- Whether an operator is an admin who can sign in.
create or replace function identity.is_admin(p_name text) returns boolean
language sql stable set search_path = identity, pg_temp as $$
  select exists (select from operator where name = p_name and role = 'admin' and user_id is not null
    and not exists (select from tollbook.account where account.name = 'user:' || user_id and disabled_at is not null))
$$;

-- Takes an operator's role away: 'taken', or why not. p_by is an admin, or null where a command asks. The rows of all admins are locked
-- first: of admins who take each other's role at once, the second is decided when the first has lost theirs.
create or replace function identity.take_role(p_name text, p_by text, p_keeps_last boolean) returns text
language plpgsql volatile set search_path = identity, pg_temp as $$
begin
  perform from operator where role = 'admin' order by name for update;
  -- new statements: they see what a call before this one has committed
  if p_by is not null and not is_admin(p_by) then return 'not_admin'; end if;
  if not exists (select from operator where name = p_name and role is not null and user_id is not null) then return 'unknown'; end if;
  if p_keeps_last and is_admin(p_name)
    and not exists (select from operator where name <> p_name and role = 'admin' and is_admin(name))
  then return 'last_admin'; end if;
  update operator set role = null where name = p_name;
  return 'taken';
end $$;

grant execute on function identity.is_admin, identity.take_role to tollbook_writer;

-- Counts one guess at a user's second factor against each of the subjects, or against none while one of them must wait: then returns
-- after how long the next may come. From its p_free-th guess on, each makes the wait of a subject twice as long, up to an hour; a day
-- without one ends it. `guesses` is the largest count.
create or replace function identity.take_guess(p_user_id uuid, p_subjects text[], p_free int[], out wait_ms bigint, out guesses int)
language plpgsql volatile set search_path = identity, pg_temp as $$
#variable_conflict use_column
declare
  moment timestamptz;
begin
  -- one after the other: of many guesses at once none is before the count of another
  perform from "user" where id = p_user_id for no key update;
  moment := tollbook.clock();
  delete from factor_guess where user_id = p_user_id and last_at not between moment - interval '1 day' and moment;
  select coalesce(max(ceil(1000 * extract(epoch from last_at + least(3600, 2 ^ least(12, guesses - free + 1)) * interval '1 second' - moment))), 0)
    into wait_ms from factor_guess join unnest(p_subjects, p_free) as counted (subject, free) using (subject)
    where user_id = p_user_id and guesses >= free;
  wait_ms := greatest(wait_ms, 0);
  guesses := 0;
  if wait_ms > 0 then return; end if;
  insert into factor_guess select p_user_id, subject, 1, moment from unnest(p_subjects) as subject
    on conflict (user_id, subject) do update set guesses = factor_guess.guesses + 1, last_at = moment;
  select max(factor_guess.guesses) into guesses from factor_guess where user_id = p_user_id and subject = any (p_subjects);
end $$;

grant execute on function identity.take_guess to tollbook_writer;
