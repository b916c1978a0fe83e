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
} from '../../chat/http/schemas/operator-credit.ts';
import { listOperation, operatorRefusals } from './list-operation.ts';
import type { Operation } from './operation.ts';

const everyRoute = ['invalid_request', ...operatorRefusals] as const;
const ofOperator = { tag: 'Operator', security: 'operatorToken' } as const;

export const operatorCreditOperations: readonly Operation[] = [
  listOperation({
    path: '/operator/keys',
    id: 'listKeys',
    tag: 'Operator',
    summary: 'List API keys',
    scope: 'keys:read',
    description: 'The secrets of the keys are not included.',
    query: keysQuery,
    schema: listedKeys,
    refusals: ['account_not_found'],
  }),
  {
    ...ofOperator,
    method: 'post',
    path: '/operator/keys',
    id: 'createKey',
    summary: 'Create an API key',
    description:
      'Requires the scope `keys:write`. Opens the account if there is none. A repeated request makes a second key.',
    body: { schema: keyRequest },
    answers: [{ status: 201, description: 'The key. It is not shown again.', schema: issuedKey }],
    refusals: [...everyRoute, 'body_too_large'],
  },
  {
    ...ofOperator,
    method: 'post',
    path: '/operator/keys/{key_id}/revoke',
    id: 'revokeKey',
    summary: 'Revoke an API key',
    description:
      'Requires the scope `keys:write`. Permanent, and effective immediately in every process. May be repeated. A request body is ignored.',
    answers: [{ status: 200, description: 'The key is revoked.', schema: revokedKey }],
    refusals: [...everyRoute, 'key_not_found', 'body_too_large'],
  },
  listOperation({
    path: '/operator/accounts',
    id: 'listAccounts',
    tag: 'Operator',
    summary: 'List credit accounts',
    scope: 'credit:read',
    description: 'Balances are current.',
    query: accountsQuery,
    schema: accounts,
  }),
  {
    ...ofOperator,
    method: 'post',
    path: '/operator/accounts/{account}/grants',
    id: 'grantCredit',
    summary: 'Grant credit to an account',
    description:
      'Requires the scope `credit:write`. Requests with the same `Idempotency-Key` grant once and get the same answer; without ' +
      'the header every request grants.',
    requestHeaders: [
      {
        name: 'Idempotency-Key',
        description: 'A unique name for this grant: 16 to 128 of A-Z, a-z, 0-9, _ and -, for example a UUID.',
      },
    ],
    body: { schema: grantRequest },
    answers: [{ status: 200, description: 'The credit is granted.', schema: granted }],
    refusals: [...everyRoute, 'account_not_found', 'account_full', 'idempotency_conflict', 'body_too_large'],
  },
];
