import { readiness, stats } from '../schemas/status.ts';
import type { Operation } from './operation.ts';

export const healthOperation: Operation = {
  method: 'get',
  path: '/x402/health',
  id: 'getHealth',
  tag: 'Status',
  summary: 'Whether the process lives',
  description: 'Touches nothing.',
  answers: [{ status: 200, description: 'It lives.', text: 'ok' }],
  refusals: [],
};

export const readyOperation: Operation = {
  method: 'get',
  path: '/x402/ready',
  id: 'getReadiness',
  tag: 'Status',
  summary: 'Whether the gateway can take payments',
  description: 'The 503 says which part cannot.',
  answers: [
    { status: 200, description: 'Every part is well.', schema: readiness },
    { status: 503, description: 'Some part is not, or the gateway is going down.', schema: readiness },
  ],
  refusals: [],
};

export const statsOperation: Operation = {
  method: 'get',
  path: '/x402/stats',
  id: 'getStats',
  tag: 'Status',
  summary: 'The public counters',
  description: 'Counts of events in the ledger: a restart changes nothing.',
  answers: [{ status: 200, description: 'The counters.', schema: stats }],
  refusals: ['internal_error', 'ledger_unavailable'],
};
