-- When a result was deleted: its receipt says so from then on. The ledger keeps the hash and the size of the result.
create table tollbook.deleted_result (
  call_id bigint not null,
  attempt int not null,
  deleted_at timestamptz not null,
  primary key (call_id, attempt)
);
