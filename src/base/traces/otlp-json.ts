import type { Attributes, HrTime, SpanContext } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** What the spans of a process have in common. */
export type ResourceAttributes = Readonly<Record<string, string>>;

/** Spans as the body of an OTLP/HTTP request in JSON: ids in hex, 64-bit integers as text. */
export function otlpTraces(resource: ResourceAttributes, spans: readonly ReadableSpan[]): string {
  const [first] = spans;
  const scope = { name: first?.instrumentationScope.name, version: first?.instrumentationScope.version };
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: keyValues(resource) },
        scopeSpans: [{ scope, spans: spans.map(otlpSpan) }],
      },
    ],
  });
}

/** OTLP's kinds begin with `unspecified`. */
const firstKind = 1;

function otlpSpan(span: ReadableSpan) {
  return {
    ...otlpContext(span.spanContext()),
    ...(span.parentSpanContext && { parentSpanId: span.parentSpanContext.spanId }),
    name: span.name,
    kind: span.kind + firstKind,
    startTimeUnixNano: nanos(span.startTime),
    endTimeUnixNano: nanos(span.endTime),
    attributes: keyValues(span.attributes),
    droppedAttributesCount: span.droppedAttributesCount,
    links: span.links.map(({ context }) => otlpContext(context)),
    status: { code: span.status.code },
  };
}

function otlpContext({ traceId, spanId }: SpanContext) {
  return { traceId, spanId };
}

function nanos([secs, rest]: HrTime): string {
  return String(BigInt(secs) * 1_000_000_000n + BigInt(rest));
}

function keyValues(attributes: Attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: Attributes[string]) {
  switch (typeof value) {
    case 'boolean':
      return { boolValue: value };
    case 'number':
      return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
    default:
      return { stringValue: String(value) };
  }
}
