import type { FastifyInstance } from 'fastify';
import type { LedgerReader } from '../../ledger/store/ledger.ts';
import type { ReplicaReads } from '../../ledger/use-cases/replicas.ts';
import { setAsOf } from '../../ledger/http/as-of.ts';
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
export function statsRoutes(ledger: LedgerReader, reads: ReplicaReads) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/x402/stats', async (_request, reply) => {
      const { value, asOf } = await reads.older(ledger, ({ db }) => readCounters(db));
      const stats: Stats = { status: 'ok', as_of_seq: value.asOfSeq, counters: value.counters };
      return setAsOf(reply, asOf).header('cache-control', 'no-store').send(stats);
    });
  };
}
