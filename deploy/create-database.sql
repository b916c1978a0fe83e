-- The database and its two users. docker-compose.yml has PostgreSQL's image run it when its volume is empty; elsewhere a superuser runs
-- it once by psql 14 or newer, with OWNER_PASSWORD and GATEWAY_PASSWORD in the environment, or the names of their files in
-- OWNER_PASSWORD_FILE and GATEWAY_PASSWORD_FILE. The owner migrates; the gateway may do what the writer role may do; neither is a superuser.
\getenv owner_password OWNER_PASSWORD
\getenv gateway_password GATEWAY_PASSWORD
\getenv owner_file OWNER_PASSWORD_FILE
\getenv gateway_file GATEWAY_PASSWORD_FILE
\if :{?owner_file}
  \set owner_password `cat "$OWNER_PASSWORD_FILE"`
\endif
\if :{?gateway_file}
  \set gateway_password `cat "$GATEWAY_PASSWORD_FILE"`
\endif
create role tollbook_writer_tollbook nologin;
create role tollbook_owner login password :'owner_password' in role tollbook_writer_tollbook;
create role tollbook_gateway login password :'gateway_password' in role tollbook_writer_tollbook;
create database tollbook owner tollbook_owner;
revoke connect, temporary on database tollbook from public;
grant connect on database tollbook to tollbook_gateway;
