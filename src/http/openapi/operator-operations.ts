import { deadLetters, deadLettersQuery, requeued } from '../schemas/operator.ts';
import { listOperation, operatorRefusals } from './list-operation.ts';
import type { Operation } from './operation.ts';

export const deadLettersOperation = listOperation({
  path: '/operator/dead-letters',
  id: 'listDeadLetters',
  tag: 'Operator',
  summary: 'List dead letters',
  scope: 'calls:read',
  query: deadLettersQuery,
  schema: deadLetters,
});

export const requeueOperation: Operation = {
  method: 'post',
  path: '/operator/dead-letters/{call_id}/requeue',
  id: 'requeueDeadLetter',
  tag: 'Operator',
  summary: 'Enqueue a dead letter again',
  description:
    'Requires the scope `calls:write`. The count of attempts starts at zero again. A request body is ignored.',
  security: 'operatorToken',
  answers: [{ status: 200, description: 'The call is enqueued again.', schema: requeued }],
  refusals: [
    'invalid_request',
    'call_not_found',
    'call_refunded',
    'call_unpaid',
    'body_too_large',
    ...operatorRefusals,
  ],
};
