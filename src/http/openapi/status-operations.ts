import { gatewayStatus, readiness, stats } from '../schemas/status.ts';
import type { Operation } from './operation.ts';

export const healthOperation: Operation = {
  method: 'get',
  path: '/x402/health',
  id: 'getHealth',
  tag: 'Status',
  summary: 'Liveness of the process',
  description: 'Answers without reading the database or any peer.',
  answers: [{ status: 200, description: 'The process is alive.', text: 'ok' }],
  refusals: [],
};

export const gatewayStatusOperation: Operation = {
  method: 'get',
  path: '/status',
  id: 'getStatus',
  tag: 'Status',
  summary: 'What works and what does not',
  description: 'For people and monitors. Answers without reading the database or any peer.',
  answers: [{ status: 200, description: 'The state of the ledger.', schema: gatewayStatus }],
  refusals: [],
};

export const readyOperation: Operation = {
  method: 'get',
  path: '/x402/ready',
  id: 'getReadiness',
  tag: 'Status',
  summary: 'Readiness: whether the gateway can take payments',
  description: 'The body of the 503 names the parts that are not ready.',
  answers: [
    { status: 200, description: 'Every part is ready.', schema: readiness },
    {
      status: 503,
      description: 'Some part is not ready, or the gateway is shutting down.',
      schema: readiness,
    },
  ],
  refusals: [],
};

export const statsOperation: Operation = {
  method: 'get',
  path: '/x402/stats',
  id: 'getStats',
  tag: 'Status',
  summary: 'The public counters',
  description: 'Counts of events in the ledger; a restart does not reset them.',
  answers: [{ status: 200, description: 'The counters.', schema: stats }],
  refusals: ['internal_error', 'ledger_unavailable'],
};
