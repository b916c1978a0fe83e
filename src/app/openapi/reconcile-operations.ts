import * as schemas from '../../finance/http/schemas/reconcile.ts';
import { auditListOperation, operatorRefusals } from './list-operation.ts';
import type { Operation } from './operation.ts';

export const listReconciliationsOperation = auditListOperation({
  path: '/audit/reconciliations',
  id: 'listReconciliations',
  summary: 'List reconciliations with the chain',
  description: 'Made by `tollbook reconcile`.',
  query: schemas.reconciliationsQuery,
  schema: schemas.reconciliations,
});

export const reconciliationOperation: Operation = {
  method: 'get',
  path: '/audit/reconciliations/{reconciliation_id}',
  id: 'getReconciliation',
  tag: 'Audit',
  summary: 'The report of one reconciliation',
  description: "Requires the scope `audit:read`. The SHA-256 of the body is the list's `report_sha256`.",
  security: 'operatorToken',
  answers: [{ status: 200, description: 'The report.', schema: schemas.reconciliation }],
  refusals: ['reconciliation_not_found', ...operatorRefusals],
};
