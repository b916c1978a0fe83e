import { gatewayStatus, readiness, stats } from '../../ledger/http/status.ts';
import type { Operation } from './operation.ts';

/** The same below the paths of each feature, so that a load balancer needs no other path. */
const ready = {
  method: 'get',
  tag: 'Status',
  summary: 'Readiness: whether a load balancer should send requests to this process',
  description:
    'The database takes writes and has the migrations, and the process is not about to stop. What else may be wrong is in `/status`.',
  answers: [
    { status: 200, description: 'The process is ready.', schema: readiness },
    { status: 503, description: 'The process is not ready; the body says why.', schema: readiness },
  ],
  refusals: [],
} as const satisfies Partial<Operation>;

export const jobStatusOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/x402/health',
    id: 'getHealth',
    tag: 'Status',
    summary: 'Liveness of the process',
    description: 'Answers without reading the database or any peer.',
    answers: [{ status: 200, description: 'The process is alive.', text: 'ok' }],
    refusals: [],
  },
  { ...ready, path: '/x402/ready', id: 'getReadiness' },
  {
    method: 'get',
    path: '/x402/stats',
    id: 'getStats',
    tag: 'Status',
    summary: 'The public counters',
    description: 'Counts of events in the ledger; a restart does not reset them.',
    answers: [{ status: 200, description: 'The counters.', schema: stats }],
    refusals: ['internal_error', 'ledger_unavailable'],
  },
];

export const chatReadyOperation: Operation = { ...ready, path: '/v1/ready', id: 'getChatReadiness' };

export const gatewayStatusOperation: Operation = {
  method: 'get',
  path: '/status',
  id: 'getStatus',
  tag: 'Status',
  summary: 'What works and what does not',
  description:
    'For people and monitors. Answers from the results of background checks. With an operator token of the scope `status:read` it ' +
    'also tells what is wrong, and with which peer, runner or anchor.',
  security: 'optionalOperatorToken',
  answers: [{ status: 200, description: 'The state of each part.', schema: gatewayStatus }],
  refusals: ['unauthorized', 'forbidden', 'internal_error', 'ledger_unavailable'],
};
