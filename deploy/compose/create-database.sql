-- Run once by the image of PostgreSQL, as its superuser, when the volume is empty. The owner migrates; the gateway gets only what the
-- writer role may do, and neither is a superuser. docs/operations.md says what each role is for.
\getenv owner_password OWNER_PASSWORD
\getenv gateway_password GATEWAY_PASSWORD
create role tollbook_writer_tollbook nologin;
create role tollbook_owner login password :'owner_password' in role tollbook_writer_tollbook;
create role tollbook_gateway login password :'gateway_password' in role tollbook_writer_tollbook;
create database tollbook owner tollbook_owner;
revoke connect, temporary on database tollbook from public;
grant connect on database tollbook to tollbook_gateway;
