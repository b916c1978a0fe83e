-- Tells each of the receivers about one state, in place of what they were not told yet about the same subject.
create or replace function tollbook.queue_alert(p_receivers text[], p_kind text, p_subject text, p_status text, p_text text,
  p_details json, p_since timestamptz, p_id text) returns void
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  moment timestamptz := clock();
begin
  delete from task where kind = 'alert_message' and queue = any (p_receivers) and key = json_build_array(p_kind, p_subject)::text;
  insert into task (kind, queue, key, created_at, ok_at, due_at, payload)
  select 'alert_message', receiver, json_build_array(p_kind, p_subject)::text, moment, moment, moment,
    json_build_object('kind', p_kind, 'subject', p_subject, 'status', p_status, 'text', p_text, 'details', p_details,
      'since', coalesce(p_since, moment), 'id', p_id)
  from unnest(p_receivers) as receiver
  on conflict do nothing;
end $$;

-- A process reports the conditions that it sees. What is new, or was resolved, is firing now, is queued for the receivers, and is
-- queued again after p_repeat_secs. What no process has reported for p_quiet_secs is resolved; not where p_is_complete is false, because a
-- process then could not look at everything. A condition with `is_told` is known to the operator already. Returns what has changed.
-- One report at a time: its process holds the row of the sender.
create or replace function tollbook.report_alerts(p_process uuid, p_conditions json, p_is_complete boolean, p_receivers text[],
  p_repeat_secs int, p_quiet_secs int)
returns table (is_sender boolean, kind text, subject text, status text, text text)
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
#variable_conflict use_column
declare
  sender alert_sender;
  moment timestamptz;
  quiet constant interval := p_quiet_secs * interval '1 second';
  seen record;
  known alert;
  is_new boolean;
  is_due boolean;
begin
  select * into strict sender from alert_sender for update;
  moment := clock();
  if sender.process_id = p_process or sender.until not between moment and moment + quiet then
    update alert_sender set process_id = p_process, until = moment + quiet;
    sender.process_id := p_process;
  end if;
  for seen in select * from json_to_recordset(p_conditions) as c(kind text, subject text, text text, details json, is_told boolean) loop
    select * into known from alert where alert.kind = seen.kind and alert.subject = seen.subject;
    is_new := known.is_firing is not true;
    is_due := is_new or known.told_at not between moment - p_repeat_secs * interval '1 second' and moment;
    insert into alert (kind, subject, is_firing, since, seen_at, told_at, text, details)
      values (seen.kind, seen.subject, true, moment, moment, moment, seen.text, seen.details)
    on conflict (kind, subject) do update set is_firing = true, since = case when is_new then moment else alert.since end,
      seen_at = moment, told_at = case when is_due then moment else alert.told_at end, text = seen.text, details = seen.details;
    if is_due and seen.is_told is not true then
      perform queue_alert(p_receivers, seen.kind, seen.subject, 'firing', seen.text, seen.details,
        case when is_new then moment else known.since end, null);
    end if;
    if is_new then
      return query select sender.process_id = p_process, seen.kind, seen.subject, 'firing', seen.text;
    end if;
  end loop;
  for known in update alert set is_firing = false
    where p_is_complete and is_firing and seen_at not between moment - quiet and moment returning * loop
    perform queue_alert(p_receivers, known.kind, known.subject, 'resolved', known.text, known.details, known.since, null);
    return query select sender.process_id = p_process, known.kind, known.subject, 'resolved', known.text;
  end loop;
  return query select sender.process_id = p_process, null, null, null, null;
end $$;

grant execute on function tollbook.queue_alert, tollbook.report_alerts to tollbook_writer;
