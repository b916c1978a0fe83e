-- Large results whose parts are in the result store, by the lease under which they came. A row is written before the first part, so that
-- every part can be found and deleted. A result counts once call_result has a row with the same lease.
create table tollbook.result_upload (
  call_id bigint not null,
  lease_id uuid not null,
  -- sent so far, at most
  parts int not null,
  -- of the whole, once its completion has named them
  bytes bigint,
  sha256 bytea,
  created_at timestamptz not null,
  primary key (call_id, lease_id)
);
