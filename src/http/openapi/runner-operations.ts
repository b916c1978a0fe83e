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
  'ledger_inconsistent',
] as const satisfies readonly RefusalCode[];
const ofRunner = { method: 'post', tag: 'Runner', security: 'runnerToken' } as const;

export const leaseOperation: Operation = {
  ...ofRunner,
  path: '/runner/leases',
  id: 'leaseCalls',
  summary: 'Lease due calls',
  description:
    'Waits up to `wait_secs` for the first call. Services take turns, the oldest call of each first. When a lease expires, the ' +
    'call is leased again, with the same call id and a new lease id.',
  body: { schema: leaseBody },
  answers: [{ status: 200, description: 'The leased calls.', schema: leases }],
  refusals: [...everyRoute, 'forbidden'],
};

export const extendOperation: Operation = {
  ...ofRunner,
  path: '/runner/calls/{call_id}/extend',
  id: 'extendLease',
  summary: 'Extend a lease',
  description: 'The lease then expires `lease_secs` from now.',
  body: { schema: extendBody },
  answers: [{ status: 200, description: 'The lease is extended.', schema: extended }],
  refusals: [...everyRoute, 'lease_lost'],
};

export const completeOperation: Operation = {
  ...ofRunner,
  path: '/runner/calls/{call_id}/complete',
  id: 'completeCall',
  summary: 'Complete a call',
  description: 'May be repeated with the same lease: the first request counts.',
  body: { schema: completeBody },
  answers: [{ status: 200, description: 'The call is completed.', schema: completed }],
  refusals: [...everyRoute, 'lease_lost', 'result_too_large'],
};

export const failOperation: Operation = {
  ...ofRunner,
  path: '/runner/calls/{call_id}/fail',
  id: 'failCall',
  summary: 'Fail an attempt',
  description:
    'With `retry` the call is leased again after a back-off, until its attempts are used up; without, it becomes a dead letter.',
  body: { schema: failBody },
  answers: [{ status: 200, description: 'The attempt is recorded.', schema: failed }],
  refusals: [...everyRoute, 'lease_lost'],
};
