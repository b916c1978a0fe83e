import { consistencyQuery, logConsistency, logProofs, proofQuery } from '../../audit/http/schemas/log.ts';
import type { Operation } from './operation.ts';

export const logOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/log/checkpoint',
    id: 'getCheckpoint',
    tag: 'Log',
    summary: 'The newest checkpoint (signed tree head)',
    description: "A C2SP tlog-checkpoint: the log's name, its size and its root, signed.",
    answers: [{ status: 200, description: 'The signed note.', bytes: 'text/plain' }],
    refusals: ['not_found', 'internal_error', 'ledger_unavailable'],
  },
  {
    method: 'get',
    path: '/log/tile/{tile}',
    id: 'getTile',
    tag: 'Log',
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
    refusals: ['not_found', 'unauthorized', 'forbidden', 'internal_error', 'ledger_unavailable'],
  },
  {
    method: 'get',
    path: '/log/proof',
    id: 'getInclusionProof',
    tag: 'Log',
    summary: 'Inclusion proofs of events',
    description:
      'Requires exactly one of `seq` (one event) and `quote_digest` (all events of a quote). With the receipt token of that quote ' +
      'as bearer token the answer includes the events.',
    security: 'receiptToken',
    query: proofQuery,
    answers: [{ status: 200, description: 'The proofs.', schema: logProofs }],
    refusals: [
      'invalid_request',
      'invalid_receipt_token',
      'proof_not_found',
      'internal_error',
      'ledger_unavailable',
    ],
  },
  {
    method: 'get',
    path: '/log/consistency',
    id: 'getConsistencyProof',
    tag: 'Log',
    summary: 'A consistency proof',
    description: 'Proves that the tree of the first `from` events is a prefix of the tree of `to` events.',
    query: consistencyQuery,
    answers: [{ status: 200, description: 'The proof.', schema: logConsistency }],
    refusals: ['invalid_request', 'proof_not_found', 'internal_error', 'ledger_unavailable'],
  },
];
