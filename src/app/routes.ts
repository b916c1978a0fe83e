import type { RoutesConfig } from '../base/config/config.ts';
import { freeRoutes, paidRoutes } from '../jobs/http/routes.ts';
import type { JobsContext } from '../jobs/use-cases/context.ts';
import { startRouteEnder, startUnawaitedEnder } from '../jobs/workers/route-ends.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { listeningUrl } from './running-gateway.ts';

/** Paid routes: an app with an address of its own, so that an upstream's answer never has the origin of pages and console. */
export function composeRoutes(
  { bodies, openApp }: Pick<FeatureParts, 'bodies' | 'openApp'>,
  { bindAddress }: RoutesConfig,
  current: () => JobsContext,
): RunningFeature {
  const app = openApp();
  const loops: Loop[] = [];
  return {
    async listen() {
      await app.register(paidRoutes({ current, bodies }));
      await app.register(freeRoutes({ current, bodies }));
      await app.listen({ ...bindAddress });
    },
    routesUrl: () => listeningUrl(app.server.address(), { bindAddress }),
    startWorkers: () => void loops.push(startRouteEnder(current), startUnawaitedEnder(current)),
    async finish() {
      await app.close();
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    async stop() {
      app.server.closeAllConnections();
    },
  };
}
