import type { RefusalCode } from '../../domain/errors/refusal.ts';
import {
  completeBody,
  completed,
  extendBody,
  extended,
  failBody,
  failed,
  leaseBody,
  leases,
} from '../schemas/runner.ts';
import type { Operation } from './operation.ts';

const everyRoute = [
  'invalid_request',
  'unauthorized',
  'body_too_large',
  'internal_error',
  'ledger_unavailable',
] as const satisfies readonly RefusalCode[];
const ofRunner = { method: 'post', tag: 'Runner', security: 'runnerToken' } as const;

export const leaseOperation: Operation = {
  ...ofRunner,
  path: '/runner/leases',
  id: 'leaseCalls',
  summary: 'Take calls that are due',
  description:
    'Waits up to `wait_secs` for the first. Services are served in turn, oldest call first. A call comes back when its ' +
    'lease runs out, under the same call id and a new lease.',
  body: { schema: leaseBody },
  answers: [{ status: 200, description: 'The leased calls.', schema: leases }],
  refusals: [...everyRoute, 'forbidden'],
};

export const extendOperation: Operation = {
  ...ofRunner,
  path: '/runner/calls/{call_id}/extend',
  id: 'extendLease',
  summary: 'Hold a lease longer',
  description: 'It then ends `lease_secs` from now.',
  body: { schema: extendBody },
  answers: [{ status: 200, description: 'The lease holds.', schema: extended }],
  refusals: [...everyRoute, 'lease_lost'],
};

export const completeOperation: Operation = {
  ...ofRunner,
  path: '/runner/calls/{call_id}/complete',
  id: 'completeCall',
  summary: 'Complete a call',
  description: 'May be sent again with the same lease: the first one counts.',
  body: { schema: completeBody },
  answers: [{ status: 200, description: 'The call is completed.', schema: completed }],
  refusals: [...everyRoute, 'lease_lost', 'result_too_large'],
};

export const failOperation: Operation = {
  ...ofRunner,
  path: '/runner/calls/{call_id}/fail',
  id: 'failCall',
  summary: 'Give a call up',
  description:
    'With `retry` it comes back after a while, until its attempts are used up; without, it is a dead letter.',
  body: { schema: failBody },
  answers: [{ status: 200, description: 'The attempt is recorded.', schema: failed }],
  refusals: [...everyRoute, 'lease_lost'],
};
