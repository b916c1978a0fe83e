-- Tells each of the receivers about one state, in place of what they were not told yet about the same subject.
create or replace function tollbook.queue_alert(p_receivers text[], p_kind text, p_subject text, p_status text, p_text text,
  p_details json, p_since timestamptz, p_id text) returns void
language plpgsql volatile security definer set search_path = tollbook, pg_temp as $$
declare
  moment timestamptz := clock();
begin
  delete from alert_message where receiver = any (p_receivers) and kind = p_kind and subject = p_subject;
  insert into alert_message (receiver, kind, subject, status, text, details, since, id, created_at, due_at)
  select receiver, p_kind, p_subject, p_status, p_text, p_details, coalesce(p_since, moment), p_id, moment, moment
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

-- Takes up to p_max messages of a receiver that are due. They are due again later and later, and after three days given up.
create or replace function tollbook.take_alert_messages(p_receiver text, p_max int)
returns table (message_id bigint, kind text, subject text, status text, text text, details json, since timestamptz, id text,
  tries int, created_at timestamptz)
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from alert_message where receiver = p_receiver and created_at < clock() - interval '3 days';
  with due as materialized (
    select alert_message.message_id from alert_message
    where receiver = p_receiver and due_at not between clock() and clock() + interval '10 minutes'
    order by alert_message.message_id limit p_max for update skip locked
  )
  update alert_message set tries = alert_message.tries + 1,
    due_at = clock() + least(interval '10 minutes', interval '1 second' * 2 ^ least(alert_message.tries + 1, 20))
  where alert_message.message_id in (select due.message_id from due)
  returning alert_message.message_id, alert_message.kind, alert_message.subject, alert_message.status, alert_message.text,
    alert_message.details, alert_message.since, alert_message.id, alert_message.tries, alert_message.created_at
$$;

-- The receiver has taken the message; one that replaced it meanwhile has another number.
create or replace function tollbook.end_alert_message(p_message_id bigint) returns void
language sql volatile security definer set search_path = tollbook, pg_temp as $$
  delete from alert_message where message_id = p_message_id
$$;

grant execute on function tollbook.queue_alert, tollbook.report_alerts, tollbook.take_alert_messages, tollbook.end_alert_message
  to tollbook_writer;
