-- outside a transaction
-- so that a payment is found by its transaction, or by the beginning of one
drop index concurrently if exists tollbook.payment_transaction;
create index concurrently payment_transaction on tollbook.payment (generation, transaction) where transaction is not null;
