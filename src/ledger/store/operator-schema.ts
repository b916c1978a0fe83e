import { operatorRoles } from '../../base/values/operator-role.ts';
import { bigint, boolean, bytea, int, nullable, oneOf, text, timestamp, uuid } from './columns.ts';

const role = oneOf(...operatorRoles);

/** The tables of operators, written like those of users. */
export const operatorTables = {
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
} as const;
