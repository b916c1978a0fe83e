import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import type { Config } from '../config/config.ts';
import type { Figure, Metrics } from '../metrics/metrics.ts';
import type { Lane } from '../store/lane.ts';
import { programVersion } from './version.ts';

/** The metrics of a process, and where Prometheus reads them. */
export interface ServedMetrics {
  readonly metrics: Metrics;
  /** Measures this app's requests, and serves `/metrics` on it or on the port of its own. */
  serve(app: FastifyInstance): Promise<void>;
  /** Adds the values to read at each scrape, and opens the port of its own, where there is one. */
  listen(figures: readonly Figure[]): Promise<void>;
  close(): Promise<void>;
}

/** The metrics that the configuration asks for; undefined without `[metrics]`: nothing is then loaded or measured. */
export async function openMetrics(settings: Config['metrics']): Promise<ServedMetrics | undefined> {
  if (!settings) return undefined;
  const [{ createMetrics }, { createMetricsApp, measureRequests, metricsRoutes }] = await Promise.all([
    import('../metrics/metrics.ts'),
    import('../http/metrics/metrics-routes.ts'),
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
      for (const figure of figures) metrics.add(figure);
      await ownApp?.listen({ ...bindAddress });
    },
    async close() {
      await ownApp?.close();
    },
  };
}

/** What every gateway knows about its ledger and its connections. */
export function ledgerFigures({ lane, pool }: { readonly lane: Lane; readonly pool: pg.Pool }): Figure[] {
  return [
    one(
      'tollbook_ledger_seq',
      'The last event of the ledger that this process knows of',
      () => lane.state.seq,
    ),
    one(
      'tollbook_ledger_halted',
      '1 while the ledger is not the one that was written: no payment is taken',
      () => (lane.state.halt ? 1 : 0),
    ),
    one('tollbook_ledger_unreachable_seconds', 'For how long appends have failed; 0 while they work', () =>
      lane.state.brokenSince === undefined ? 0 : (Date.now() - lane.state.brokenSince) / 1_000,
    ),
    one(
      'tollbook_clock_offset_seconds',
      "The database's clock minus this process's",
      () => lane.state.clockOffsetMs / 1_000,
    ),
    one('tollbook_calls_open', 'Calls that wait or are leased, of all jobs', () => lane.state.openCalls),
    one(
      'tollbook_calls_unsettled',
      'Calls whose payment has no known outcome yet',
      () => lane.state.unsettledCalls,
    ),
    {
      name: 'tollbook_database_connections',
      help: 'Connections of the pool of this process, without those of the lane',
      labels: ['state'],
      read: () => [
        { labels: { state: 'idle' }, value: pool.idleCount },
        { labels: { state: 'in_use' }, value: pool.totalCount - pool.idleCount },
      ],
    },
    one(
      'tollbook_database_connections_awaited',
      'Queries that wait for a connection',
      () => pool.waitingCount,
    ),
  ];
}

function one(name: string, help: string, read: () => number): Figure {
  return { name, help, read: () => [{ value: read() }] };
}
