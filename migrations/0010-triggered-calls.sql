-- Calls that an operator's trigger made instead of a payment: they have no token, and the trigger names them.
alter table tollbook.call
  alter column network drop not null,
  alter column asset drop not null,
  alter column symbol drop not null,
  -- what made the call; null for a paid one. The trigger's name in the configuration, and what it was triggered by
  add column trigger_kind text collate "C",
  add column trigger_name text collate "C",
  add column trigger_id text collate "C";
-- those of the open calls that a trigger made: they have a limit of their own
alter table tollbook.lane add column triggered_calls bigint not null default 0;
