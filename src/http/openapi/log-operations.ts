import { consistencyQuery, logConsistency, logProofs, proofQuery } from '../schemas/log.ts';
import type { Operation } from './operation.ts';

export const checkpointOperation: Operation = {
  method: 'get',
  path: '/log/checkpoint',
  id: 'getCheckpoint',
  tag: 'Log',
  summary: 'The newest checkpoint',
  description: "A C2SP tlog-checkpoint: the log's name, its size and its root, signed.",
  answers: [{ status: 200, description: 'The signed note.', bytes: 'text/plain' }],
  refusals: ['not_found', 'internal_error', 'ledger_unavailable'],
};

export const tileOperation: Operation = {
  method: 'get',
  path: '/log/tile/{tile}',
  id: 'getTile',
  tag: 'Log',
  summary: 'A tile of the log',
  description:
    'As C2SP tlog-tiles says. Tiles of hashes are for everybody; those of `entries` hold the events themselves, and want an ' +
    "operator's token with the scope `audit:read`.",
  answers: [{ status: 200, description: 'Its bytes; they never change.', bytes: 'application/octet-stream' }],
  refusals: ['not_found', 'unauthorized', 'forbidden', 'internal_error', 'ledger_unavailable'],
};

export const proofOperation: Operation = {
  method: 'get',
  path: '/log/proof',
  id: 'getInclusionProof',
  tag: 'Log',
  summary: 'Proofs that events stand in the log',
  description:
    'Of one event by `seq`, or of all events of a quote by `quote_digest`: exactly one of them. With the receipt token of that ' +
    'quote as bearer the events themselves come along.',
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
};

export const consistencyOperation: Operation = {
  method: 'get',
  path: '/log/consistency',
  id: 'getConsistencyProof',
  tag: 'Log',
  summary: 'A proof that nothing was rewritten',
  description: 'That the tree of `from` events is the beginning of the head of `to`.',
  query: consistencyQuery,
  answers: [{ status: 200, description: 'The proof.', schema: logConsistency }],
  refusals: ['invalid_request', 'proof_not_found', 'internal_error', 'ledger_unavailable'],
};
