import fastify, { type FastifyInstance } from 'fastify';
import type { MetricsConfig } from '../../base/config/config.ts';
import type { Metrics } from '../../ledger/metrics/metrics.ts';
import { handleErrors, sendRefusal } from '../../ledger/http/errors.ts';
import { hasBearer } from '../../base/http/request-values.ts';

/** Reports each answered request of this app, by the pattern of its route. */
export function measureRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onResponse', async (request, reply) => {
    // a client that left has no status
    if (!reply.raw.writableFinished) return;
    metrics.requestAnswered({
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      secs: reply.elapsedTime / 1_000,
    });
  });
}

/** GET /metrics, in Prometheus' text format; with a token only for requests that bear it. */
export function metricsRoutes(metrics: Metrics, token: string | undefined) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/metrics', async (request, reply) => {
      if (token !== undefined && !hasBearer(request, token))
        return sendRefusal(request, reply, 'unauthorized');
      const { body, contentType } = await metrics.text();
      return reply.header('cache-control', 'no-store').type(contentType).send(body);
    });
  };
}

/** An app for a port that serves the metrics and nothing else. */
export async function createMetricsApp(
  metrics: Metrics,
  { token }: Pick<MetricsConfig, 'token'>,
): Promise<FastifyInstance> {
  const app = fastify({ forceCloseConnections: true, requestTimeout: 10_000, bodyLimit: 1_024 });
  handleErrors(app);
  await app.register(metricsRoutes(metrics, token));
  return app;
}
