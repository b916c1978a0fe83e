-- Payers who ask for a refund. What they write is a client's text, and never in the ledger: `refund_requested` has its hash.
create table tollbook.refund_reason (
  -- as tollbook.stream_key writes it
  stream bytea not null,
  sha256 bytea not null,
  -- an address in lower case
  payer text collate "C" not null,
  reason text not null,
  created_at timestamptz not null,
  primary key (stream, sha256)
);
create index refund_reason_created on tollbook.refund_reason (created_at);
create index refund_reason_payer on tollbook.refund_reason (payer);

-- when its payer asked, while an operator has that to decide or to pay
alter table tollbook.payment add column refund_requested_at timestamptz;
