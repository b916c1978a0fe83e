import type { RefusalCode } from '../../domain/errors/refusal.ts';
import {
  accounts,
  accountsQuery,
  granted,
  grantRequest,
  issuedKey,
  keyRequest,
  keysQuery,
  listedKeys,
  revokedKey,
} from '../schemas/operator-credit.ts';
import type { Operation } from './operation.ts';

const everyRoute = [
  'invalid_request',
  'unauthorized',
  'forbidden',
  'internal_error',
  'ledger_unavailable',
] as const satisfies readonly RefusalCode[];
const ofOperator = { tag: 'Operator', security: 'operatorToken' } as const;

export const listKeysOperation: Operation = {
  ...ofOperator,
  method: 'get',
  path: '/operator/keys',
  id: 'listKeys',
  summary: 'The API keys',
  description: 'Never the keys themselves. Wants the scope `keys:read`.',
  query: keysQuery,
  answers: [{ status: 200, description: 'A page of them.', schema: listedKeys }],
  refusals: [...everyRoute, 'account_not_found'],
};

export const createKeyOperation: Operation = {
  ...ofOperator,
  method: 'post',
  path: '/operator/keys',
  id: 'createKey',
  summary: 'Make an API key',
  description:
    'Opens its account where there is none. Sent twice it makes two. Wants the scope `keys:write`.',
  body: { schema: keyRequest },
  answers: [{ status: 201, description: 'The key, this once.', schema: issuedKey }],
  refusals: [...everyRoute, 'body_too_large'],
};

export const revokeKeyOperation: Operation = {
  ...ofOperator,
  method: 'post',
  path: '/operator/keys/{key_id}/revoke',
  id: 'revokeKey',
  summary: 'End an API key',
  description:
    'For good, in every process at once; it may be sent again. Wants the scope `keys:write`. A body means nothing.',
  answers: [{ status: 200, description: 'It is revoked.', schema: revokedKey }],
  refusals: [...everyRoute, 'key_not_found', 'body_too_large'],
};

export const listAccountsOperation: Operation = {
  ...ofOperator,
  method: 'get',
  path: '/operator/accounts',
  id: 'listAccounts',
  summary: 'The accounts of credit',
  description: 'As they stand now. Wants the scope `credit:read`.',
  query: accountsQuery,
  answers: [{ status: 200, description: 'A page of them.', schema: accounts }],
  refusals: everyRoute,
};

export const grantOperation: Operation = {
  ...ofOperator,
  method: 'post',
  path: '/operator/accounts/{account}/grants',
  id: 'grantCredit',
  summary: 'Give an account credit',
  description:
    'Sent twice with one `Idempotency-Key` it gives once, and both have the same answer; without one it gives twice. ' +
    'Wants the scope `credit:write`.',
  requestHeaders: [
    {
      name: 'Idempotency-Key',
      description:
        'A name for this grant, 16 to 128 of A-Z, a-z, 0-9, _ and -, unlike that of any other: a UUID, for example.',
    },
  ],
  body: { schema: grantRequest },
  answers: [{ status: 200, description: 'It is given.', schema: granted }],
  refusals: [...everyRoute, 'account_not_found', 'account_full', 'idempotency_conflict', 'body_too_large'],
};
