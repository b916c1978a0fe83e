import { resultPartBytes } from '../../base/values/result-parts.ts';
import {
  completeBody,
  completed,
  extendBody,
  extended,
  failBody,
  failed,
  leaseBody,
  leases,
  progressBody,
  progressTaken,
  storedPart,
  leaseIdExample,
} from '../../jobs/http/schemas/runner.ts';
import { operations } from './operation.ts';

const ofRunner = {
  tag: 'Runner',
  security: 'runnerToken',
  refusals: [
    'invalid_request',
    'unauthorized',
    'body_too_large',
    'internal_error',
    'ledger_unavailable',
    'ledger_inconsistent',
  ],
} as const;

export const runnerOperations = operations(ofRunner, {
  'POST /runner/leases': {
    id: 'leaseCalls',
    summary: 'Lease due calls',
    description:
      'Waits up to `wait_secs` for the first call. Services take turns, the oldest call of each first. When a lease expires, the ' +
      'call is leased again, with the same call id and a new lease id.',
    body: { schema: leaseBody },
    answers: [{ status: 200, description: 'The leased calls.', schema: leases }],
    refusals: ['forbidden'],
  },
  'POST /runner/calls/{call_id}/extend': {
    id: 'extendLease',
    summary: 'Extend a lease',
    description: 'The lease then expires `lease_secs` from now.',
    body: { schema: extendBody },
    answers: [{ status: 200, description: 'The lease is extended.', schema: extended }],
    refusals: ['lease_lost'],
  },
  'POST /runner/calls/{call_id}/complete': {
    id: 'completeCall',
    summary: 'Complete a call',
    description:
      'May be repeated with the same lease: the first request counts. With `stored_result` the gateway reads the parts and compares them with it first.',
    body: { schema: completeBody },
    answers: [{ status: 200, description: 'The call is completed.', schema: completed }],
    refusals: ['lease_lost', 'result_too_large', 'result_mismatch', 'result_store_unavailable'],
  },
  'POST /runner/calls/{call_id}/result-parts/{part}': {
    id: 'sendResultPart',
    summary: 'Send a part of a large result',
    description: `For a result beyond the limit of \`/complete\`, if the gateway has a result store. Every part but the last has ${resultPartBytes} bytes. A part that is sent again replaces the earlier one. Nothing counts until \`/complete\` names the whole as \`stored_result\`.`,
    requestHeaders: [
      {
        name: 'X-Net-Lease-Id',
        description: 'The `lease_id` of the call.',
        required: { example: leaseIdExample },
      },
    ],
    body: { bytes: 'application/octet-stream', description: 'The bytes of the part.' },
    answers: [{ status: 200, description: 'The part is stored.', schema: storedPart }],
    refusals: ['lease_lost', 'result_too_large', 'result_store_unavailable', 'overloaded'],
  },
  'POST /runner/calls/{call_id}/progress': {
    id: 'reportProgress',
    summary: 'Report the progress of a call',
    description:
      'The last value alone is kept while the call is leased, for its payer. At most two reports a second are taken of a call: one that comes sooner is answered with `skipped`, and not kept.',
    body: { schema: progressBody },
    answers: [{ status: 200, description: 'The progress is taken.', schema: progressTaken }],
    refusals: ['lease_lost'],
  },
  'POST /runner/calls/{call_id}/fail': {
    id: 'failCall',
    summary: 'Fail an attempt',
    description:
      'With `retry` the call is leased again after a back-off, until its attempts are used up; without, it becomes a dead letter.',
    body: { schema: failBody },
    answers: [{ status: 200, description: 'The attempt is recorded.', schema: failed }],
    refusals: ['lease_lost'],
  },
});
