-- The database and its two users. docker-compose.yml has PostgreSQL's image run it when its volume is empty; elsewhere a superuser runs
-- it once by psql 14 or newer, with OWNER_PASSWORD and GATEWAY_PASSWORD in the environment. The owner migrates; the gateway may do what
-- the writer role may do; neither is a superuser.
\getenv owner_password OWNER_PASSWORD
\getenv gateway_password GATEWAY_PASSWORD
create role tollbook_writer_tollbook nologin;
create role tollbook_owner login password :'owner_password' in role tollbook_writer_tollbook;
create role tollbook_gateway login password :'gateway_password' in role tollbook_writer_tollbook;
create database tollbook owner tollbook_owner;
revoke connect, temporary on database tollbook from public;
grant connect on database tollbook to tollbook_gateway;
