import * as schemas from '../../audit/http/schemas/projections.ts';
import { auditListOperation, operatorRefusals } from './list-operation.ts';
import type { Operation } from './operation.ts';

const followsEvents =
  'Read models follow the ledger with a short delay: `as_of_seq` is the last event that they include.';

export const auditPaymentsOperation = auditListOperation({
  path: '/audit/payments',
  id: 'listPayments',
  summary: 'List payments',
  description: followsEvents,
  query: schemas.paymentsQuery,
  schema: schemas.auditedPayments,
});

export const auditPaymentHistoryOperation: Operation = {
  method: 'get',
  path: '/audit/payments/{quote_digest}',
  id: 'getPaymentHistory',
  tag: 'Audit',
  summary: 'All events of a quote, with their proofs',
  description: 'Requires the scope `audit:read`. Read from the ledger itself, without delay.',
  security: 'operatorToken',
  answers: [{ status: 200, description: 'The payment history.', schema: schemas.paymentHistory }],
  refusals: ['payment_not_found', ...operatorRefusals],
};

export const auditCallsOperation = auditListOperation({
  path: '/audit/calls',
  id: 'listPaidCalls',
  summary: 'List paid calls',
  description: followsEvents,
  query: schemas.callsQuery,
  schema: schemas.auditedCalls,
});

export const auditCreditOperation = auditListOperation({
  path: '/audit/credit',
  id: 'listAccountCredit',
  summary: 'List the credit of every account',
  description: followsEvents,
  query: schemas.creditQuery,
  schema: schemas.auditedCredit,
});

export const auditTotalsOperation: Operation = {
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
};
