-- The idempotency key that the runner of a paid call gets. Null where it is `payment`: of calls that gateways of earlier versions have stored,
-- so that no runner gets another key than it has seen, and of those that triggers made.
alter table tollbook.call add column idempotency_key text collate "C";
