import type { RefusalCode } from '../../domain/errors/refusal.ts';
import * as schemas from '../schemas/reconciliation.ts';
import type { Operation } from './operation.ts';

const scope = 'Wants the scope `audit:read`.';
const refused = [
  'unauthorized',
  'forbidden',
  'internal_error',
  'ledger_unavailable',
] as const satisfies readonly RefusalCode[];

export const listReconciliationsOperation: Operation = {
  method: 'get',
  path: '/audit/reconciliations',
  id: 'listReconciliations',
  tag: 'Audit',
  summary: 'The reconciliations with the chain',
  description: `${scope} Made by \`tollbook reconcile\`.`,
  security: 'operatorToken',
  query: schemas.reconciliationsQuery,
  answers: [{ status: 200, description: 'A page of them.', schema: schemas.reconciliations }],
  refusals: ['invalid_request', 'invalid_cursor', ...refused],
};

export const reconciliationOperation: Operation = {
  method: 'get',
  path: '/audit/reconciliations/{reconciliation_id}',
  id: 'getReconciliation',
  tag: 'Audit',
  summary: 'One reconciliation, with all that it found',
  description: `${scope} Its SHA-256 is the \`report_sha256\` of the list.`,
  security: 'operatorToken',
  answers: [{ status: 200, description: 'The report.', schema: schemas.reconciliation }],
  refusals: ['reconciliation_not_found', ...refused],
};
