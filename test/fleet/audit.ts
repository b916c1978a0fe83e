import { ask } from '../chaos/sql.ts';

/** What the database saw of leases, written by a trigger of the test's own. */
export interface Audit {
  /** Leases that were given to somebody else while they were valid. */
  readonly replacedWhileLive: number;
  /** Attempts that more than one runner took from the broker. */
  readonly takenTwice: number;
  /** Calls whose events are not one `call_triggered` and one `completed`. */
  readonly notCompletedOnce: number;
  readonly completed: number;
}

/** Has every new lease recorded, with the one that it replaces. */
export async function beginAudit(url: string): Promise<void> {
  await ask(
    url,
    `create table if not exists public.lease_audit
      (call_id bigint, attempt int, is_same_attempt boolean, was_live boolean);
    create or replace function public.audit_lease() returns trigger language plpgsql security definer as $$
    begin
      insert into public.lease_audit values (new.call_id, new.attempt, new.attempt = old.attempt,
        old.status in ('leased', 'unpaid') and old.due_at > tollbook.clock());
      return new;
    end $$;
    drop trigger if exists audit_lease on tollbook.call;
    create trigger audit_lease after update on tollbook.call for each row
      when (new.status = 'leased' and new.lease_id is distinct from old.lease_id)
      execute function public.audit_lease()`,
  );
}

export async function countOpenCalls(url: string): Promise<number> {
  const [row] = await ask<{ calls: number }>(url, 'select count(*)::int as calls from tollbook.call');
  return row?.calls ?? 0;
}

export async function readAudit(url: string): Promise<Audit> {
  const [row] = await ask<Audit>(
    url,
    `select
      (select count(*)::int from public.lease_audit where was_live and not is_same_attempt) as "replacedWhileLive",
      (select count(*)::int from (select from public.lease_audit where is_same_attempt
        group by call_id, attempt having count(*) > 1) twice) as "takenTwice",
      (select count(*)::int from (select stream from tollbook.event where stream like 'call:%' group by stream
        having count(*) filter (where type = 'completed') <> 1 or count(*) filter (where type = 'call_triggered') <> 1) wrong)
        as "notCompletedOnce",
      (select count(*)::int from tollbook.event where type = 'completed') as completed`,
  );
  if (!row) throw new Error('the audit has no row');
  return row;
}
