-- What the role of accountants and dashboards may read. Left out are the receipt key, what clients sent and got, hashes of keys and tokens,
-- users' webhooks with the secrets that sign for them, clients' callbacks, answers to gateways, and people, of whom it reads the operators' names and
-- roles alone. Applied after grants.sql, where the role exists.
grant usage on schema tollbook, identity, audit to tollbook_reader;
grant select on all tables in schema tollbook, audit to tollbook_reader;
revoke all on tollbook.secret, tollbook.call_body, tollbook.call_result, tollbook.callback, tollbook.account_webhook, tollbook.api_key,
  tollbook.operator_token, tollbook.lane_batch from tollbook_reader;
grant select (key_id, account_id, name, models, cap, spent, budget, budget_period, budget_from, budget_spent, budget_used, created_at,
  expires_at, revoked_at, last_used_at, is_of_user) on tollbook.api_key to tollbook_reader;
grant select (token_id, name, scopes, accounts, created_at, expires_at, revoked_at) on tollbook.operator_token to tollbook_reader;
grant select (name, user_id, role) on identity.operator to tollbook_reader;
