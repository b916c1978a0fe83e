-- how much of a payment was refunded: until now a refund was the whole payment
alter table tollbook.payment add column refunded_amount numeric not null default 0;
update tollbook.payment set refunded_amount = amount where refund_transaction is not null;
