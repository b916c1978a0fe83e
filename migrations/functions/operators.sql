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
