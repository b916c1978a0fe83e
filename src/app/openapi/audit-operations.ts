import * as schemas from '../../audit/http/schemas/projections.ts';
import * as refunds from '../../audit/http/schemas/refunds.ts';
import * as reconciliation from '../../finance/http/schemas/reconcile.ts';
import { listOperation, type ListOperation, operatorRefusals } from './list-operation.ts';
import type { Operation } from './operation.ts';

const followsEvents =
  'Read models follow the ledger with a short delay: `as_of_seq` is the last event that they include.';

/** A list of the audit API; its pages are linked by cursors. */
function auditListOperation(described: Omit<ListOperation, 'scope' | 'tag' | 'refusals'>): Operation {
  return listOperation({ ...described, scope: 'audit:read', tag: 'Audit', refusals: ['invalid_cursor'] });
}

export const auditOperations: readonly Operation[] = [
  auditListOperation({
    path: '/audit/payments',
    id: 'listPayments',
    summary: 'List payments',
    description: followsEvents,
    query: schemas.paymentsQuery,
    schema: schemas.auditedPayments,
  }),
  {
    method: 'get',
    path: '/audit/payments/{quote_digest}',
    id: 'getPaymentHistory',
    tag: 'Audit',
    summary: 'All events of a quote, with their proofs',
    description: 'Requires the scope `audit:read`. Read from the ledger itself, without delay.',
    security: 'operatorToken',
    answers: [{ status: 200, description: 'The payment history.', schema: schemas.paymentHistory }],
    refusals: ['payment_not_found', ...operatorRefusals],
  },
  auditListOperation({
    path: '/audit/calls',
    id: 'listPaidCalls',
    summary: 'List paid calls',
    description: followsEvents,
    query: schemas.callsQuery,
    schema: schemas.auditedCalls,
  }),
  auditListOperation({
    path: '/audit/credit',
    id: 'listAccountCredit',
    summary: 'List the credit of every account',
    description: followsEvents,
    query: schemas.creditQuery,
    schema: schemas.auditedCredit,
  }),
  {
    method: 'get',
    path: '/audit/totals',
    id: 'getTotals',
    tag: 'Audit',
    summary: 'Income of each job on each day',
    description: 'Requires the scope `audit:read`. Both days are included.',
    security: 'operatorToken',
    query: schemas.totalsQuery,
    answers: [{ status: 200, description: 'The totals.', schema: schemas.totals }],
    refusals: ['invalid_request', ...operatorRefusals],
  },
  auditListOperation({
    path: '/audit/refunds-due',
    id: 'listRefundsDue',
    summary: 'List refunds due: payments without a delivered result',
    description: 'A payment leaves the list when its refund is recorded or its call is enqueued again.',
    query: refunds.refundsDueQuery,
    schema: refunds.refundsDue,
  }),
  auditListOperation({
    path: '/audit/reconciliations',
    id: 'listReconciliations',
    summary: 'List reconciliations with the chain',
    description: 'Made by `tollbook reconcile`.',
    query: reconciliation.reconciliationsQuery,
    schema: reconciliation.reconciliations,
  }),
  {
    method: 'get',
    path: '/audit/reconciliations/{reconciliation_id}',
    id: 'getReconciliation',
    tag: 'Audit',
    summary: 'The report of one reconciliation',
    description: "Requires the scope `audit:read`. The SHA-256 of the body is the list's `report_sha256`.",
    security: 'operatorToken',
    answers: [{ status: 200, description: 'The report.', schema: reconciliation.reconciliation }],
    refusals: ['reconciliation_not_found', ...operatorRefusals],
  },
];
