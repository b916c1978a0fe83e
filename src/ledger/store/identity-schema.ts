import { operatorRoles } from '../../base/values/operator-role.ts';
import {
  bigint,
  boolean,
  bytea,
  type Column,
  int,
  nullable,
  oneOf,
  text,
  timestamp,
  uuid,
} from './columns.ts';

const role = oneOf(...operatorRoles);

/**
 * The tables of people: those that better-auth defines, and those of operators, which are written like them; a test compares
 * them with the database.
 */
export const identityTables = {
  'identity.credential': {
    id: uuid,
    user_id: uuid,
    provider_id: text,
    account_id: text,
    password: nullable(text),
    access_token: nullable(text),
    refresh_token: nullable(text),
    id_token: nullable(text),
    access_token_expires_at: nullable(timestamp),
    refresh_token_expires_at: nullable(timestamp),
    scope: nullable(text),
    created_at: timestamp,
    updated_at: timestamp,
  },
  'identity.factor_guess': { user_id: uuid, subject: text, guesses: int, last_at: timestamp },
  'identity.operator': { name: text, user_id: nullable(uuid), role: nullable(role), created_at: timestamp },
  'identity.operator_factor': {
    factor_id: uuid,
    user_id: uuid,
    kind: oneOf('totp', 'passkey'),
    credential_id: nullable(text),
    key: bytea,
    last_step: bigint,
    created_at: timestamp,
  },
  'identity.operator_invitation': {
    invitation_id: uuid,
    token: text,
    name: text,
    email: text,
    role,
    invited_by: text,
    by_command: boolean,
    expires_at: timestamp,
    accepted_at: nullable(timestamp),
  },
  'identity.operator_recovery_code': { user_id: uuid, hash: text },
  'identity.operator_session': { token: text, session_id: uuid, expires_at: timestamp },
  'identity.session': {
    id: uuid,
    user_id: uuid,
    token: text,
    expires_at: timestamp,
    created_at: timestamp,
    updated_at: timestamp,
    ip_address: nullable(text),
    user_agent: nullable(text),
    ended_reason: nullable(oneOf('ended', 'expired')),
  },
  'identity.siwe_nonce': { nonce: text, issued_at: timestamp },
  'identity.user': {
    id: uuid,
    name: text,
    email: text,
    email_verified: boolean,
    image: nullable(text),
    created_at: timestamp,
    updated_at: timestamp,
  },
  'identity.verification': {
    id: uuid,
    identifier: text,
    value: text,
    expires_at: timestamp,
    created_at: timestamp,
    updated_at: timestamp,
  },
  'identity.wallet': { address: text, chain_id: bigint, user_id: uuid, created_at: timestamp },
} as const satisfies Record<string, Readonly<Record<string, Column<unknown>>>>;
