import type { FastifyInstance } from 'fastify';
import { leaseRoutes } from '../http/jobs/leases.ts';
import { progressRoute } from '../http/jobs/progress.ts';
import { resultRoute } from '../http/jobs/result-file.ts';
import { resultPartRoute } from '../http/jobs/result-parts.ts';
import { paidJobRoutes } from '../http/jobs/jobs.ts';
import { priceRoutes } from '../http/jobs/prices.ts';
import { discoveryRoutes } from '../http/jobs/discovery.ts';
import { didRoute } from '../http/jobs/did.ts';
import { receiptRoutes } from '../http/jobs/receipts.ts';
import { operatorRoutes } from '../http/jobs/operator.ts';
import { healthRoutes, statsRoutes } from '../http/jobs/status.ts';
import type { RequestBodies } from '../http/server/request-bodies.ts';
import { createWaitPlaces } from '../http/server/wait-places.ts';
import type { JobsContext } from '../jobs/context.ts';
import { ownLogReader } from '../log/log-reader.ts';
import type { Readiness } from '../workers/readiness-checker.ts';

interface RouteParts {
  readonly current: () => JobsContext;
  readonly bodies: RequestBodies;
  readonly readiness: () => Readiness;
}

/** Every route of the feature `x402`: for clients, runners and operators. */
export async function registerJobRoutes(
  app: FastifyInstance,
  { current, bodies, readiness }: RouteParts,
): Promise<void> {
  const places = createWaitPlaces(() => current().config.limits);
  const { pool, config } = current();
  await app.register(paidJobRoutes(current, bodies, places));
  await app.register(leaseRoutes(current));
  await app.register(resultPartRoute(current, bodies));
  await app.register(progressRoute(current));
  await app.register(priceRoutes(current));
  await app.register(discoveryRoutes(current));
  await app.register(didRoute(current));
  await app.register(resultRoute(current));
  await app.register(receiptRoutes(current, ownLogReader(pool, config.log), places));
  await app.register(operatorRoutes(current));
  await app.register(healthRoutes(readiness));
  await app.register(statsRoutes(current()));
}
