import type { FastifyInstance } from 'fastify';
import { leaseRoutes, progressRoute } from '../jobs/http/leases.ts';
import { resultRoute } from '../jobs/http/result-file.ts';
import { resultPartRoute } from '../jobs/http/result-parts.ts';
import { paidJobRoutes } from '../jobs/http/jobs.ts';
import { priceRoutes } from '../jobs/http/prices.ts';
import { discoveryRoutes, didRoute } from '../jobs/http/discovery.ts';
import { receiptRoutes } from '../jobs/http/receipts.ts';
import { operatorRoutes } from '../jobs/http/operator.ts';
import { healthRoutes, statsRoutes } from '../jobs/http/status.ts';
import type { RequestBodies } from '../base/http/request-bodies.ts';
import { createWaitPlaces } from '../base/http/wait-places.ts';
import type { JobsContext } from '../jobs/use-cases/context.ts';
import { ownLogReaders } from '../audit/use-cases/log/log-reader.ts';
import type { ReplicaReads } from '../ledger/use-cases/replicas.ts';
import type { Readiness } from '../ledger/workers/readiness-checker.ts';

interface RouteParts {
  readonly current: () => JobsContext;
  readonly reads: ReplicaReads;
  readonly bodies: RequestBodies;
  readonly readiness: () => Readiness;
}

/** Every route of the feature `x402`: for clients, runners and operators. */
export async function registerJobRoutes(
  app: FastifyInstance,
  { current, reads, bodies, readiness }: RouteParts,
): Promise<void> {
  const places = createWaitPlaces(() => current().config.limits);
  const { pool, db, config } = current();
  await app.register(paidJobRoutes(current, bodies, places));
  await app.register(leaseRoutes(current));
  await app.register(resultPartRoute(current, bodies));
  await app.register(progressRoute(current));
  await app.register(priceRoutes(current));
  await app.register(discoveryRoutes(current));
  await app.register(didRoute(current));
  await app.register(resultRoute(current));
  await app.register(receiptRoutes({ current, replicas: reads, logOn: ownLogReaders(config.log), places }));
  await app.register(operatorRoutes(current));
  await app.register(healthRoutes(readiness));
  await app.register(statsRoutes({ pool, db }, reads));
}
