-- Execution of functions is granted beside each function.
grant usage on schema tollbook, identity to tollbook_writer;
grant select on all tables in schema tollbook to tollbook_writer;
grant select, insert, update, delete on all tables in schema identity to tollbook_writer;
