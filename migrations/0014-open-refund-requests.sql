-- outside a transaction
-- An index that a stopped run left unfinished is made again.
drop index concurrently if exists tollbook.payment_refund_requested;
create index concurrently payment_refund_requested on tollbook.payment (generation, refund_requested_at)
  where refund_requested_at is not null;
