-- Rows of the read models that no rebuild makes. Of calls that were taken back with their payments: an update of a payment left them
-- until now.
delete from tollbook.paid_call call where not exists (
  select from tollbook.payment where payment.generation = call.generation and payment.seq = call.seq and payment.call_id = call.call_id);
-- And the end of a dead letter that was given up: a step that read both events took the time of the later one.
update tollbook.paid_call call set ended_at = dead.at
  from tollbook.event started, tollbook.event dead
  where call.status = 'dead_lettered' and started.lane_id = 1 and started.seq = call.seq and dead.stream = started.stream
    and dead.type = 'dead_lettered' and (dead.data::json->>'call_id')::bigint = call.call_id and dead.at < call.ended_at
    and not exists (select from tollbook.event later where later.stream = dead.stream and later.version > dead.version
      and later.type = 'dead_lettered' and (later.data::json->>'call_id')::bigint = call.call_id);
update tollbook.payment payment set refund_due_since = call.ended_at
  from tollbook.paid_call call
  where call.status = 'dead_lettered' and call.generation = payment.generation and call.seq = payment.seq
    and call.call_id = payment.call_id and payment.refund_due is not null and payment.refund_due_since > call.ended_at;
