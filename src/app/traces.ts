import { hostname } from 'node:os';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../base/config/config.ts';
import type { Tracing } from '../base/values/tracing.ts';
import { traceRequests } from '../base/http/request-traces.ts';
import { programVersion } from './version.ts';

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
