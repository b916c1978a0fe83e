import type { RefusalCode } from '../../domain/errors/refusal.ts';
import * as schemas from '../schemas/audit.ts';
import type { Operation } from './operation.ts';

const scope = 'Wants the scope `audit:read`.';
const refused = [
  'unauthorized',
  'forbidden',
  'internal_error',
  'ledger_unavailable',
] as const satisfies readonly RefusalCode[];
const listed = ['invalid_request', 'invalid_cursor', ...refused] as const;

export const auditPaymentsOperation: Operation = {
  method: 'get',
  path: '/audit/payments',
  id: 'listPayments',
  tag: 'Audit',
  summary: 'The payments',
  description: `${scope} Made from the events a moment behind them: \`as_of_seq\` says how far.`,
  security: 'operatorToken',
  query: schemas.paymentsQuery,
  answers: [{ status: 200, description: 'A page of them.', schema: schemas.auditedPayments }],
  refusals: listed,
};

export const auditStoryOperation: Operation = {
  method: 'get',
  path: '/audit/payments/{quote_digest}',
  id: 'getPaymentStory',
  tag: 'Audit',
  summary: 'The whole story of a quote, with its proof',
  description: `${scope} Read from the ledger itself.`,
  security: 'operatorToken',
  answers: [{ status: 200, description: 'The story.', schema: schemas.auditedStory }],
  refusals: ['payment_not_found', ...refused],
};

export const auditCallsOperation: Operation = {
  method: 'get',
  path: '/audit/calls',
  id: 'listPaidCalls',
  tag: 'Audit',
  summary: 'The paid calls',
  description: scope,
  security: 'operatorToken',
  query: schemas.callsQuery,
  answers: [{ status: 200, description: 'A page of them.', schema: schemas.auditedCalls }],
  refusals: listed,
};

export const auditRefundsDueOperation: Operation = {
  method: 'get',
  path: '/audit/refunds-due',
  id: 'listRefundsDue',
  tag: 'Audit',
  summary: 'The payments whose money is owed back',
  description: `${scope} One leaves the list when its refund is recorded, or its call is sent again.`,
  security: 'operatorToken',
  query: schemas.refundsDueQuery,
  answers: [{ status: 200, description: 'A page of them.', schema: schemas.refundsDue }],
  refusals: listed,
};

export const auditCreditOperation: Operation = {
  method: 'get',
  path: '/audit/credit',
  id: 'listAccountCredit',
  tag: 'Audit',
  summary: 'The credit of every account',
  description: `${scope} Made from the events a moment behind them: \`as_of_seq\` says how far.`,
  security: 'operatorToken',
  query: schemas.creditQuery,
  answers: [{ status: 200, description: 'A page of them.', schema: schemas.auditedCredit }],
  refusals: listed,
};

export const auditTotalsOperation: Operation = {
  method: 'get',
  path: '/audit/totals',
  id: 'getTotals',
  tag: 'Audit',
  summary: 'What each job earned on each day',
  description: `${scope} From one day to another, both included.`,
  security: 'operatorToken',
  query: schemas.totalsQuery,
  answers: [{ status: 200, description: 'The totals.', schema: schemas.totals }],
  refusals: ['invalid_request', ...refused],
};
