import { hostname } from 'node:os';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../base/config/config.ts';
import type { Tracing, Span } from '../base/values/tracing.ts';
import { programVersion } from './version.ts';
import { parseTraceparent } from '../base/values/traceparent.ts';
import { factsOf, noteFacts } from '../base/http/request-log.ts';

/** The traces of a process. */
export interface OpenTraces {
  readonly tracing: Tracing;
  /** Traces this app's requests. */
  serve(app: FastifyInstance): void;
  /** Sends the last spans, for a bounded time. */
  close(): Promise<void>;
}

/** The tracing that the configuration asks for; undefined without `[traces]`: nothing of OpenTelemetry is then loaded. */
export async function openTraces(settings: Config['traces'], log: Logger): Promise<OpenTraces | undefined> {
  if (!settings) return undefined;
  const [{ createTracing }, { createOtlpExporter }] = await Promise.all([
    import('../base/traces/tracing.ts'),
    import('../base/traces/otlp-exporter.ts'),
  ]);
  const version = programVersion();
  const resource = {
    'service.name': settings.serviceName,
    'service.version': version,
    // as each line of the log names the process
    'service.instance.id': String(log.bindings()['instance'] ?? process.pid),
    'host.name': hostname(),
  };
  const exporter = createOtlpExporter(settings, resource, log);
  const tracing = createTracing({ exporter, sampleRatio: settings.sampleRatio, version });
  return { tracing, serve: (app) => traceRequests(app, tracing), close: () => tracing.close() };
}

/** Asked again and again, also while nothing happens. */
const untraced: ReadonlySet<string> = new Set([
  '/x402/health',
  '/x402/ready',
  '/v1/ready',
  '/status',
  '/metrics',
]);

/**
 * Records each request to this app as a span, below the one that its `traceparent` names. It has the route's pattern, never the path,
 * which may hold a digest or a token.
 */
function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  app.addHook('onRequest', (request, reply, done) => {
    const route = request.routeOptions.url;
    if (route !== undefined && untraced.has(route)) return done();
    const span = tracing.beginFrom(
      {
        name: route === undefined ? request.method : `${request.method} ${route}`,
        kind: 'server',
        attributes: { 'http.request.method': request.method, 'http.route': route },
      },
      { parent: request.headers['traceparent'] },
    );
    const own = parseTraceparent(span.traceparent);
    if (own) noteFacts(request, { trace_id: own.traceId, span_id: own.spanId });
    reply.raw.once('close', () => end(span, request, reply));
    span.run(done);
  });
}

function end(span: Span, request: FastifyRequest, reply: FastifyReply): void {
  span.note({ 'tollbook.code': factsOf(request)?.code });
  if (!reply.raw.writableFinished) return span.end('client_left');
  const { statusCode } = reply;
  span.note({ 'http.response.status_code': statusCode });
  span.end(statusCode >= 500 ? String(statusCode) : undefined);
}
