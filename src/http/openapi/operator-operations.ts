import { deadLetters, deadLettersQuery, requeued } from '../schemas/operator.ts';
import type { Operation } from './operation.ts';

export const deadLettersOperation: Operation = {
  method: 'get',
  path: '/operator/dead-letters',
  id: 'listDeadLetters',
  tag: 'Operator',
  summary: 'The dead letters',
  description: 'Wants the scope `calls:read`.',
  security: 'operatorToken',
  query: deadLettersQuery,
  answers: [{ status: 200, description: 'A page of them.', schema: deadLetters }],
  refusals: ['invalid_request', 'unauthorized', 'forbidden', 'internal_error', 'ledger_unavailable'],
};

export const requeueOperation: Operation = {
  method: 'post',
  path: '/operator/dead-letters/{call_id}/requeue',
  id: 'requeueDeadLetter',
  tag: 'Operator',
  summary: 'Send a dead letter again',
  description: 'Wants the scope `calls:write`. The call gets all its attempts anew. A body means nothing.',
  security: 'operatorToken',
  answers: [{ status: 200, description: 'It is enqueued again.', schema: requeued }],
  refusals: [
    'invalid_request',
    'unauthorized',
    'forbidden',
    'call_not_found',
    'call_refunded',
    'body_too_large',
    'internal_error',
    'ledger_unavailable',
  ],
};
