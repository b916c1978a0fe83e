import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { TracesConfig } from '../config/config.ts';
import type { OperatorLog } from '../values/operator-log.ts';
import { createHttpPool, type HttpAnswer, isSuccess } from '../peers/http/http.ts';
import { otlpTraces, type ResourceAttributes } from './otlp-json.ts';

/** Of one request: a collector answers once it has taken the spans into its memory. */
const timeoutMs = 1_500;
const maxResponseBytes = 64 * 1_024;

/**
 * Sends spans to a collector by OTLP/HTTP, each batch once: spans that it does not take are lost. Logs when that begins and when it ends.
 * @throws TypeError for an invalid URL
 */
export function createOtlpExporter(
  { endpoint, headers }: TracesConfig,
  resource: ResourceAttributes,
  log: OperatorLog,
): SpanExporter {
  const { pathname } = new URL(endpoint);
  const pool = createHttpPool(endpoint, { connections: 1 });
  const path = `${pathname.replace(/\/+$/, '')}/v1/traces`;
  const target = { method: 'POST', path, timeoutMs, maxResponseBytes } as const;
  let lostSpans = 0;

  const hear = (cause: string | undefined, spans: number): void => {
    if (cause === undefined) {
      if (lostSpans > 0) log.info({ lost_spans: lostSpans }, 'the collector takes traces again');
      lostSpans = 0;
    } else {
      if (lostSpans === 0) log.warn({ cause }, 'the collector takes no traces: they are lost until it does');
      lostSpans += spans;
    }
  };

  const send = async (spans: readonly ReadableSpan[]): Promise<void> => {
    const typed = { ...headers, 'content-type': 'application/json' };
    const answer = await pool.request({ ...target, headers: typed, body: otlpTraces(resource, spans) });
    hear(failureOf(answer), spans.length);
  };

  return {
    export(spans, done) {
      // a failure is logged here: the SDK would only report it to its own handler
      void send(spans)
        .catch(() => hear('fault', spans.length))
        .finally(() => done({ code: 0 }));
    },
    shutdown: () => pool.close(),
  };
}

/** The status counts, also if the body is incomplete. */
function failureOf(answer: HttpAnswer): string | undefined {
  const status = answer.kind === 'response' ? answer.status : answer.head?.status;
  if (status !== undefined) return isSuccess(status) ? undefined : `status_${status}`;
  return answer.kind === 'failed' ? answer.cause : undefined;
}
