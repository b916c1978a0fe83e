-- The rights of the gateway's role on tables; each function's file grants its functions. Applied after every migration.
grant usage on schema tollbook, identity to tollbook_writer;
grant select on all tables in schema tollbook to tollbook_writer;
grant select, insert, update, delete on all tables in schema identity to tollbook_writer;
