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
import { operations } from './operation.ts';
import {
  accounts,
  accountsQuery,
  granted,
  grantRequest,
  issuedKey,
  keyRequest,
  keysQuery,
  listedKeys,
  revokedKey,
} from '../../chat/http/schemas/operator-credit.ts';

const ofOperator = { tag: 'Operator', refusals: ['invalid_request'] } as const;

const ofRunnerState = {
  scope: 'calls:write',
  answers: [{ status: 200, description: 'The state of the runner.', schema: changedRunner }],
  refusals: ['runner_not_found', 'body_too_large'],
} as const;
const mayBeRepeated = 'May be repeated. A request body is ignored.';

export const operatorOperations = operations(ofOperator, {
  'GET /operator/dead-letters': {
    id: 'listDeadLetters',
    summary: 'List dead letters',
    scope: 'calls:read',
    query: deadLettersQuery,
    page: deadLetters,
  },
  'GET /operator/dead-letters/causes': {
    id: 'listDeadLetterCauses',
    summary: 'Group dead letters by cause',
    description: 'Repeat it with `after` until `next` is null, and add up the groups of the same cause.',
    scope: 'calls:read',
    query: causesQuery,
    page: deadLetterCauses,
  },
  'POST /operator/dead-letters/{call_id}/requeue': {
    id: 'requeueDeadLetter',
    summary: 'Enqueue a dead letter again',
    scope: 'calls:write',
    description: 'The count of attempts starts at zero again. A request body is ignored.',
    answers: [{ status: 200, description: 'The call is enqueued again.', schema: requeued }],
    refusals: ['call_not_found', 'call_refunded', 'refund_under_way', 'call_unpaid', 'body_too_large'],
  },
  'POST /operator/dead-letters/requeue': {
    id: 'requeueDeadLetters',
    summary: 'Enqueue many dead letters again',
    scope: 'calls:write',
    description:
      'One batch: repeat it with `after` until `next` is null. Calls whose payment was refunded or is ' +
      'not settled are skipped.',
    body: { schema: requeueRequest },
    answers: [{ status: 200, description: 'What was done, or would be.', schema: requeueReport }],
    refusals: ['body_too_large'],
  },
  'POST /operator/dead-letters/{call_id}/discard': {
    id: 'discardCall',
    summary: 'Give a call up',
    scope: 'calls:write',
    description: 'The call, a dead letter or one that waits, leaves the queue for good; its refund is due.',
    body: { schema: discardRequest },
    answers: [{ status: 200, description: 'The call is given up.', schema: discarded }],
    refusals: ['call_not_found', 'call_leased', 'body_too_large'],
  },
  'POST /operator/dead-letters/discard': {
    id: 'discardDeadLetters',
    summary: 'Give many dead letters up',
    scope: 'calls:write',
    description:
      'One batch: repeat it with `after` until `next` is null. The calls leave the queue for good; their ' +
      'refunds are due. `count` confirms how many this batch means: the `discarded` of a dry run. Dead letters that were requeued meanwhile are skipped.',
    body: { schema: discardManyRequest },
    answers: [{ status: 200, description: 'What was done, or would be.', schema: discardReport }],
    refusals: ['count_differs', 'body_too_large'],
  },
  'POST /operator/runners/{runner}/pause': {
    ...ofRunnerState,
    id: 'pauseRunner',
    summary: 'Pause a runner',
    description: `No process pushes or leases calls to it until it is resumed. ${mayBeRepeated}`,
  },
  'POST /operator/runners/{runner}/resume': {
    ...ofRunnerState,
    id: 'resumeRunner',
    summary: 'Resume a paused runner',
    description: `Its calls are delivered again. ${mayBeRepeated}`,
  },
});

export const operatorCreditOperations = operations(ofOperator, {
  'GET /operator/keys': {
    id: 'listKeys',
    summary: 'List API keys',
    scope: 'keys:read',
    description: 'The secrets of the keys are not included.',
    query: keysQuery,
    page: listedKeys,
    refusals: ['account_not_found'],
  },
  'POST /operator/keys': {
    id: 'createKey',
    summary: 'Create an API key',
    scope: 'keys:write',
    description: 'Opens the account if there is none. A repeated request makes a second key.',
    body: { schema: keyRequest },
    answers: [{ status: 201, description: 'The key. It is not shown again.', schema: issuedKey }],
    refusals: ['body_too_large'],
  },
  'POST /operator/keys/{key_id}/revoke': {
    id: 'revokeKey',
    summary: 'Revoke an API key',
    scope: 'keys:write',
    description:
      'Permanent, and effective immediately in every process. May be repeated. A request body is ignored.',
    answers: [{ status: 200, description: 'The key is revoked.', schema: revokedKey }],
    refusals: ['key_not_found', 'body_too_large'],
  },
  'GET /operator/accounts': {
    id: 'listAccounts',
    summary: 'List credit accounts',
    scope: 'credit:read',
    description: 'Balances are current.',
    query: accountsQuery,
    page: accounts,
  },
  'POST /operator/accounts/{account}/grants': {
    id: 'grantCredit',
    summary: 'Grant credit to an account',
    scope: 'credit:write',
    description:
      'Requests with the same `Idempotency-Key` grant once and get the same answer; without ' +
      'the header every request grants.',
    requestHeaders: [
      {
        name: 'Idempotency-Key',
        description: 'A unique name for this grant: 16 to 128 of A-Z, a-z, 0-9, _ and -, for example a UUID.',
      },
    ],
    body: { schema: grantRequest },
    answers: [{ status: 200, description: 'The credit is granted.', schema: granted }],
    refusals: ['account_not_found', 'account_full', 'idempotency_conflict', 'body_too_large'],
  },
});
