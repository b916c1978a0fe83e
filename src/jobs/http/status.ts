import type { FastifyInstance } from 'fastify';
import type { Ledger } from '../../ledger/store/ledger.ts';
import { readCounters } from '../../ledger/store/counters.ts';
import { readyRoutes } from '../../ledger/http/ready.ts';
import type { ReadinessJson, Stats } from '../../ledger/http/status.ts';

export function healthRoutes(readiness: () => ReadinessJson) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/x402/health', async (_request, reply) => reply.type('text/plain; charset=utf-8').send('ok'));
    await app.register(readyRoutes(readiness), { prefix: '/x402' });
  };
}

/** The public counters. */
export function statsRoutes(context: Pick<Ledger, 'db'>) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/x402/stats', async (_request, reply) => {
      const { asOfSeq, counters } = await readCounters(context.db);
      const stats: Stats = { status: 'ok', as_of_seq: asOfSeq, counters };
      return reply.header('cache-control', 'no-store').send(stats);
    });
  };
}
