import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { parseTraceparent } from '../../../src/base/values/traceparent.ts';
import { traceStep } from '../../../src/base/values/tracing.ts';
import { createTracing } from '../../../src/base/traces/tracing.ts';

const request = { name: 'request', kind: 'server' } as const;
const sampled = `00-${'4b'.repeat(16)}-${'5c'.repeat(8)}-01`;
const unsampled = sampled.replace(/01$/, '00');

/** Takes spans; answers at once, or when it is opened. */
function memory(isOpen = true) {
  const spans: ReadableSpan[] = [];
  const waiting: (() => void)[] = [];
  let opened = isOpen;
  const exporter: SpanExporter = {
    export(batch, done) {
      spans.push(...batch);
      if (opened) done({ code: 0 });
      else waiting.push(() => done({ code: 0 }));
    },
    shutdown: async () => {},
  };
  const open = (): void => {
    opened = true;
    for (const answer of waiting.splice(0)) answer();
  };
  return { spans, exporter, open };
}

function tracingTo({ exporter }: Pick<ReturnType<typeof memory>, 'exporter'>, sampleRatio = 1) {
  return createTracing({ exporter, sampleRatio, version: '0.0.0' });
}

test('a step is below the one that runs it, also after it has waited and ended, and outside of a request there is no span', async () => {
  const kept = memory();
  const tracing = tracingTo(kept);
  await traceStep(tracing, { name: 'work of its own' }, async () => {});
  expect(tracing.traceparent()).toBeUndefined();
  const span = tracing.beginFrom(request, {});
  const behind = span.run(async () => {
    await traceStep(tracing, { name: 'outer' }, () => traceStep(tracing, { name: 'inner' }, async () => {}));
    span.end();
    await traceStep(tracing, { name: 'behind' }, async () => {});
  });
  await behind;
  await tracing.close();
  const idOf = (name: string) => kept.spans.find((one) => one.name === name)?.spanContext().spanId;
  const parents = kept.spans.map((one) => [one.name, one.parentSpanContext?.spanId]);
  expect(new Map(parents as [string, string][])).toEqual(
    new Map([
      ['inner', idOf('outer')],
      ['outer', idOf('request')],
      ['request', undefined],
      ['behind', idOf('request')],
    ]),
  );
});

test.each([
  ['nothing of a sender', {}, 1, true],
  ['nothing of a sender', {}, 0, false],
  ['a parent that is recorded', { parent: sampled }, 1, true],
  ['a parent that is recorded', { parent: sampled }, 0, false],
  ['a parent that is not recorded', { parent: unsampled }, 1, false],
  ['a malformed parent', { parent: 'x' }, 1, true],
  ['a link to what is recorded', { link: sampled }, 1, true],
  ['a link to what is not recorded', { link: unsampled }, 1, false],
] as const)('a span with %s (%j) is recorded by a ratio of %d: %s', async (_, origin, ratio, isRecorded) => {
  const kept = memory();
  const tracing = tracingTo(kept, ratio);
  const span = tracing.beginFrom(request, origin);
  expect(parseTraceparent(span.traceparent)?.isSampled).toBe(isRecorded);
  expect(span.run(() => tracing.traceparent())).toBe(span.traceparent);
  span.run(() => tracing.begin({ name: 'step' }))?.end();
  span.end();
  await tracing.close();
  expect(kept.spans.map(({ name }) => name)).toEqual(isRecorded ? ['step', 'request'] : []);
});

/** Which of 200 traces another tracing with this ratio records. */
function recordedBy(ratio: number): boolean[] {
  const tracing = tracingTo(memory(), ratio);
  return Array.from({ length: 200 }, (_, index) => {
    const traceId = `${index.toString(16).padStart(2, '0')}${'7c1d95e3'.repeat(4)}`.slice(0, 32);
    const span = tracing.beginFrom(request, { parent: `00-${traceId}-${'5c'.repeat(8)}-01` });
    return parseTraceparent(span.traceparent)?.isSampled ?? false;
  });
}

test('a ratio records the same traces in every process', () => {
  const recorded = recordedBy(0.5);
  expect(recordedBy(0.5)).toEqual(recorded);
  expect(new Set(recorded)).toEqual(new Set([true, false]));
});

test('while a collector does not answer, at most 4,096 spans wait for it, and what a span holds is bounded', async () => {
  const kept = memory(false);
  const tracing = tracingTo(kept);
  for (let i = 0; i < 10_000; i++) {
    const span = tracing.beginFrom(request, {});
    if (i === 0) span.note({ long: 'x'.repeat(10_000) });
    span.end();
  }
  expect(kept.spans).toHaveLength(512);
  expect(kept.spans[0]?.attributes['long']).toHaveLength(200);
  kept.open();
  await tracing.close();
  expect(kept.spans).toHaveLength(512 + 4_096);
});
