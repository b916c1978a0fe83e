import {
  causesQuery,
  changedRunner,
  deadLetterCauses,
  deadLetters,
  deadLettersQuery,
  discarded,
  discardManyRequest,
  discardReport,
  discardRequest,
  requeued,
  requeueReport,
  requeueRequest,
} from '../../jobs/http/schemas/operator.ts';
import { listOperation, operatorRefusals } from './list-operation.ts';
import type { Operation } from './operation.ts';

function runnerOperation(verb: 'pause' | 'resume', summary: string, description: string): Operation {
  return {
    method: 'post',
    path: `/operator/runners/{runner}/${verb}`,
    id: `${verb}Runner`,
    tag: 'Operator',
    summary,
    description: `Requires the scope \`calls:write\`. ${description} May be repeated. A request body is ignored.`,
    security: 'operatorToken',
    answers: [{ status: 200, description: 'The state of the runner.', schema: changedRunner }],
    refusals: ['invalid_request', 'runner_not_found', 'body_too_large', ...operatorRefusals],
  };
}

export const operatorOperations: readonly Operation[] = [
  listOperation({
    path: '/operator/dead-letters',
    id: 'listDeadLetters',
    tag: 'Operator',
    summary: 'List dead letters',
    scope: 'calls:read',
    query: deadLettersQuery,
    schema: deadLetters,
  }),
  listOperation({
    path: '/operator/dead-letters/causes',
    id: 'listDeadLetterCauses',
    tag: 'Operator',
    summary: 'Group dead letters by cause',
    description: 'Repeat it with `after` until `next` is null, and add up the groups of the same cause.',
    scope: 'calls:read',
    query: causesQuery,
    schema: deadLetterCauses,
  }),
  {
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
      'refund_under_way',
      'call_unpaid',
      'body_too_large',
      ...operatorRefusals,
    ],
  },
  {
    method: 'post',
    path: '/operator/dead-letters/requeue',
    id: 'requeueDeadLetters',
    tag: 'Operator',
    summary: 'Enqueue many dead letters again',
    description:
      'Requires the scope `calls:write`. One batch: repeat it with `after` until `next` is null. Calls whose payment was refunded or is ' +
      'not settled are skipped.',
    security: 'operatorToken',
    body: { schema: requeueRequest },
    answers: [{ status: 200, description: 'What was done, or would be.', schema: requeueReport }],
    refusals: ['invalid_request', 'body_too_large', ...operatorRefusals],
  },
  {
    method: 'post',
    path: '/operator/dead-letters/{call_id}/discard',
    id: 'discardCall',
    tag: 'Operator',
    summary: 'Give a call up',
    description:
      'Requires the scope `calls:write`. The call, a dead letter or one that waits, leaves the queue for good; its refund is due.',
    security: 'operatorToken',
    body: { schema: discardRequest },
    answers: [{ status: 200, description: 'The call is given up.', schema: discarded }],
    refusals: ['invalid_request', 'call_not_found', 'call_leased', 'body_too_large', ...operatorRefusals],
  },
  {
    method: 'post',
    path: '/operator/dead-letters/discard',
    id: 'discardDeadLetters',
    tag: 'Operator',
    summary: 'Give many dead letters up',
    description:
      'Requires the scope `calls:write`. One batch: repeat it with `after` until `next` is null. The calls leave the queue for good; their ' +
      'refunds are due. `count` confirms how many this batch means: the `discarded` of a dry run. Dead letters that were requeued meanwhile are skipped.',
    security: 'operatorToken',
    body: { schema: discardManyRequest },
    answers: [{ status: 200, description: 'What was done, or would be.', schema: discardReport }],
    refusals: ['invalid_request', 'count_differs', 'body_too_large', ...operatorRefusals],
  },
  runnerOperation('pause', 'Pause a runner', 'No process pushes or leases calls to it until it is resumed.'),
  runnerOperation('resume', 'Resume a paused runner', 'Its calls are delivered again.'),
];
