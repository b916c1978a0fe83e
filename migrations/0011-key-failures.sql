-- After how many failed attempts a call no longer keeps the others of its key waiting; null: never.
alter table tollbook.call add column key_failures int;
