import { gatewayStatus, readiness, stats } from '../../ledger/http/status.ts';
import { asOfHeaders } from './headers.ts';
import { operations } from './operation.ts';

/** The same below the paths of each feature, so that a load balancer needs no other path. */
const ready = {
  summary: 'Readiness: whether a load balancer should send requests to this process',
  description:
    'The database takes writes and has the migrations, and the process is not about to stop. What else may be wrong is in `/status`.',
  answers: [
    { status: 200, description: 'The process is ready.', schema: readiness },
    { status: 503, description: 'The process is not ready; the body says why.', schema: readiness },
  ],
} as const;
const ofStatus = { tag: 'Status' } as const;

export const jobStatusOperations = operations(ofStatus, {
  'GET /x402/health': {
    id: 'getHealth',
    summary: 'Liveness of the process',
    description: 'Answers without reading the database or any peer.',
    answers: [{ status: 200, description: 'The process is alive.', text: 'ok' }],
  },
  'GET /x402/ready': { ...ready, id: 'getReadiness' },
  'GET /x402/stats': {
    id: 'getStats',
    summary: 'The public counters',
    description: 'Counts of events in the ledger; a restart does not reset them.',
    answers: [{ status: 200, description: 'The counters.', schema: stats, headers: asOfHeaders }],
    refusals: ['internal_error', 'ledger_unavailable'],
  },
});

export const chatStatusOperations = operations(ofStatus, {
  'GET /v1/ready': { ...ready, id: 'getChatReadiness' },
});

export const gatewayStatusOperations = operations(ofStatus, {
  'GET /status': {
    id: 'getStatus',
    summary: 'What works and what does not',
    description:
      'For people and monitors. Answers from the results of background checks. With an operator token of the scope `status:read` it ' +
      'also tells what is wrong, and with which peer, runner or anchor.',
    security: 'optionalOperatorToken',
    answers: [{ status: 200, description: 'The state of each part.', schema: gatewayStatus }],
    refusals: ['unauthorized', 'forbidden', 'internal_error', 'ledger_unavailable'],
  },
});
