import { type ReadableSpan, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { otlpTraces } from '../../../src/base/traces/otlp-json.ts';

interface Sent {
  readonly resourceSpans: readonly [
    { readonly scopeSpans: readonly [{ readonly spans: readonly object[] }] },
  ];
}

test('an attribute is sent in the type that OTLP has for it: whole numbers as text, which loses no digit, others as a double', () => {
  const spans: ReadableSpan[] = [];
  const processor: SpanProcessor = {
    onStart() {},
    onEnd: (span) => void spans.push(span),
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  const tracer = new TracerProvider({ spanProcessors: [processor] }).getTracer('test');
  tracer.startSpan('a', { attributes: { whole: 3, half: 0.5, is: true, text: '3' } }).end();
  const { resourceSpans } = JSON.parse(otlpTraces({}, spans)) as Sent;
  expect(resourceSpans[0].scopeSpans[0].spans).toMatchObject([
    {
      attributes: [
        { key: 'whole', value: { intValue: '3' } },
        { key: 'half', value: { doubleValue: 0.5 } },
        { key: 'is', value: { boolValue: true } },
        { key: 'text', value: { stringValue: '3' } },
      ],
    },
  ]);
});
