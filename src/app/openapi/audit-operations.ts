import * as schemas from '../../audit/http/schemas/projections.ts';
import * as refunds from '../../audit/http/schemas/refunds.ts';
import * as reconciliation from '../../finance/http/schemas/reconcile.ts';
import { asOfHeaders } from './headers.ts';
import { operations } from './operation.ts';
import { consistencyQuery, logConsistency, logProofs, proofQuery } from '../../audit/http/schemas/log.ts';

const followsEvents =
  'Read models follow the ledger with a short delay: `as_of_seq` is the last event that they include.';

const ofAudit = { tag: 'Audit', headers: asOfHeaders } as const;
/** Pages are linked by cursors. */
const listRefusals = ['invalid_request', 'invalid_cursor'] as const;

export const auditOperations = operations(ofAudit, {
  'GET /audit/payments': {
    id: 'listPayments',
    summary: 'List payments',
    description: followsEvents,
    query: schemas.paymentsQuery,
    page: schemas.auditedPayments,
    scope: 'audit:read',
    refusals: listRefusals,
  },
  'GET /audit/payments/{quote_digest}': {
    id: 'getPaymentHistory',
    summary: 'All events of a quote, with their proofs',
    scope: 'audit:read',
    description: 'Read from the ledger itself, without delay.',
    answers: [{ status: 200, description: 'The payment history.', schema: schemas.paymentHistory }],
    refusals: ['payment_not_found'],
  },
  'GET /audit/calls': {
    id: 'listPaidCalls',
    summary: 'List paid calls',
    description: followsEvents,
    query: schemas.callsQuery,
    page: schemas.auditedCalls,
    scope: 'audit:read',
    refusals: listRefusals,
  },
  'GET /audit/credit': {
    id: 'listAccountCredit',
    summary: 'List the credit of every account',
    description: followsEvents,
    query: schemas.creditQuery,
    page: schemas.auditedCredit,
    scope: 'audit:read',
    refusals: listRefusals,
  },
  'GET /audit/totals': {
    id: 'getTotals',
    summary: 'Income of each job on each day',
    scope: 'audit:read',
    description: 'Both days are included.',
    query: schemas.totalsQuery,
    answers: [{ status: 200, description: 'The totals.', schema: schemas.totals }],
    refusals: ['invalid_request'],
  },
  'GET /audit/refunds-due': {
    id: 'listRefundsDue',
    summary: 'List refunds due: payments without a delivered result',
    description: 'A payment leaves the list when its refund is recorded or its call is enqueued again.',
    query: refunds.refundsDueQuery,
    page: refunds.refundsDue,
    scope: 'audit:read',
    refusals: listRefusals,
  },
  'GET /audit/reconciliations': {
    id: 'listReconciliations',
    summary: 'List reconciliations with the chain',
    description: 'Made by `tollbook reconcile`.',
    query: reconciliation.reconciliationsQuery,
    page: reconciliation.reconciliations,
    scope: 'audit:read',
    refusals: listRefusals,
  },
  'GET /audit/reconciliations/{reconciliation_id}': {
    id: 'getReconciliation',
    summary: 'The report of one reconciliation',
    scope: 'audit:read',
    description: "The SHA-256 of the body is the list's `report_sha256`.",
    answers: [{ status: 200, description: 'The report.', schema: reconciliation.reconciliation }],
    refusals: ['reconciliation_not_found'],
  },
});

const ofLog = { tag: 'Log', refusals: ['internal_error', 'ledger_unavailable'] } as const;

export const logOperations = operations(ofLog, {
  'GET /log/checkpoint': {
    id: 'getCheckpoint',
    summary: 'The newest checkpoint (signed tree head)',
    description: "A C2SP tlog-checkpoint: the log's name, its size and its root, signed.",
    answers: [{ status: 200, description: 'The signed note.', bytes: 'text/plain' }],
    refusals: ['not_found'],
  },
  'GET /log/tile/{tile}': {
    id: 'getTile',
    summary: 'A tile of the log',
    description:
      'As C2SP tlog-tiles specifies. Tiles of hashes are public. Tiles of `entries` hold the events and require an operator token ' +
      'with the scope `audit:read`.',
    answers: [
      {
        status: 200,
        description: 'The bytes of the tile; they never change.',
        bytes: 'application/octet-stream',
      },
    ],
    refusals: ['not_found', 'unauthorized', 'forbidden'],
  },
  'GET /log/proof': {
    id: 'getInclusionProof',
    summary: 'Inclusion proofs of events',
    description:
      'Requires exactly one of `seq` (one event) and `quote_digest` (all events of a quote). With the receipt token of that quote ' +
      'as bearer token the answer includes the events.',
    security: 'receiptToken',
    query: proofQuery,
    answers: [{ status: 200, description: 'The proofs.', schema: logProofs }],
    refusals: ['invalid_request', 'invalid_receipt_token', 'proof_not_found'],
  },
  'GET /log/consistency': {
    id: 'getConsistencyProof',
    summary: 'A consistency proof',
    description: 'Proves that the tree of the first `from` events is a prefix of the tree of `to` events.',
    query: consistencyQuery,
    answers: [{ status: 200, description: 'The proof.', schema: logConsistency }],
    refusals: ['invalid_request', 'proof_not_found'],
  },
});
