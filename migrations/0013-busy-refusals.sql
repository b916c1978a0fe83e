-- How often a busy runner refused a call since it was last enqueued: none of these was a failed attempt.
alter table tollbook.call add column refusals int not null default 0;
