import type { FastifyInstance } from 'fastify';
import type { Config } from '../base/config/config.ts';
import type { Figure, Metrics } from '../ledger/metrics/metrics.ts';
import { programVersion } from './version.ts';

/** The metrics of a process, and where Prometheus reads them. */
export interface ServedMetrics {
  readonly metrics: Metrics;
  /** Measures this app's requests, and serves `/metrics` on it or on a separate port. */
  serve(app: FastifyInstance): Promise<void>;
  /** Adds the values to read at each scrape, and opens the separate port, if there is one. */
  listen(figures: readonly Figure[]): Promise<void>;
  close(): Promise<void>;
}

/** The metrics that the configuration asks for; undefined without `[metrics]`: nothing is then loaded or measured. */
export async function openMetrics(settings: Config['metrics']): Promise<ServedMetrics | undefined> {
  if (!settings) return undefined;
  const [{ createMetrics }, { createMetricsApp, measureRequests, metricsRoutes }] = await Promise.all([
    import('../ledger/metrics/metrics.ts'),
    import('./http/metrics-routes.ts'),
  ]);
  const metrics = createMetrics(programVersion());
  const { bindAddress } = settings;
  const ownApp = bindAddress && (await createMetricsApp(metrics, settings));
  return {
    metrics,
    async serve(app) {
      measureRequests(app, metrics);
      if (!ownApp) await app.register(metricsRoutes(metrics, settings.token));
    },
    async listen(figures) {
      for (const each of mergeFigures(figures)) metrics.add(each);
      await ownApp?.listen({ ...bindAddress });
    },
    async close() {
      await ownApp?.close();
    },
  };
}

/** Several parts may have values of one figure, each with its own labels. */
function mergeFigures(figures: readonly Figure[]): Figure[] {
  const byName = [...Map.groupBy(figures, ({ name }) => name).values()];
  return byName.flatMap(([first, ...others]) => {
    if (!first) return [];
    return { ...first, read: () => [first, ...others].flatMap((figure) => [...figure.read()]) };
  });
}
