-- outside a transaction
-- What the reconciliation of a period needs of the rest of the ledger, so that it need not read that: the events that are rare and
-- change what is said of other periods, and the payments that settled long after their start. An index that a stopped run left
-- unfinished is made again.
drop index concurrently if exists tollbook.event_rare;
create index concurrently event_rare on tollbook.event (type, seq) where type in ('refunded', 'settlement_failed',
  'settlement_disproved', 'settlement_reorged', 'payment_recovered', 'redelivery_requested', 'enqueued_again', 'operator_requeued',
  'operator_sweep_recorded', 'operator_transfer_recorded', 'operator_transfer_reversed', 'operator_break_explained', 'spend_paid_out');
drop index concurrently if exists tollbook.payment_settled_late;
create index concurrently payment_settled_late on tollbook.payment (generation, settled_at)
  where settled_at - at > interval '1 day';
