import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  type Link,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api';
import {
  BatchSpanProcessor,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { formatTraceparent, parseTraceparent } from '../values/traceparent.ts';
import type { Span, SpanAttributes, SpanStart, Tracing } from '../values/tracing.ts';
import { within } from '../runtime/within.ts';

/** Tracing with OpenTelemetry's SDK. */
export interface SdkTracing extends Tracing {
  /** Sends the remaining spans, for at most `flushMs`. */
  close(): Promise<void>;
}

interface TracingOptions {
  readonly exporter: SpanExporter;
  /** The part of the traces that are recorded, by their ids. */
  readonly sampleRatio: number;
  readonly version: string;
}

/** Spans that wait for their batch; more are dropped. */
const maxQueuedSpans = 4_096;
const maxBatchSpans = 512;
const batchEveryMs = 2_000;
/** Longer than one export may take by itself: see the exporter. */
const exportTimeoutMs = 10_000;
/** How long a shutdown waits for the last spans. */
const flushMs = 2_000;
/** Far above a span's usual size: no peer's answer makes one grow. */
const spanLimits = { attributeCountLimit: 32, attributeValueLengthLimit: 200, linkCountLimit: 4 };

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;

/**
 * Records spans and hands them to the exporter in batches, in the background. Registers nothing globally: two gateways in a process
 * have a tracing each.
 */
export function createTracing({ exporter, sampleRatio, version }: TracingOptions): SdkTracing {
  const processor = new BatchSpanProcessor({
    exporter,
    maxQueueSize: maxQueuedSpans,
    maxExportBatchSize: maxBatchSpans,
    scheduledDelayMillis: batchEveryMs,
    exportTimeoutMillis: exportTimeoutMs,
  });
  const provider = new TracerProvider({
    sampler: createSampler(sampleRatio),
    spanLimits,
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer('tollbook', version);
  const running = new AsyncLocalStorage<Context>();

  const start = ({ name, kind = 'internal', attributes }: SpanStart, within_: Context, links: Link[]): Span =>
    spanOf(tracer.startSpan(name, { kind: kinds[kind], attributes: { ...attributes }, links }, within_), {
      running,
      parent: within_,
    });

  return {
    traceparent() {
      const context = running.getStore();
      const span = context && trace.getSpanContext(context);
      return span && nameOf(span);
    },
    begin(what) {
      const context = running.getStore();
      return context && isSampled(context) ? start(what, context, []) : undefined;
    },
    beginFrom(what, { parent, link }) {
      const [from] = remote(parent);
      const context = from ? trace.setSpanContext(ROOT_CONTEXT, from) : ROOT_CONTEXT;
      return start(
        what,
        context,
        remote(link).map((linked) => ({ context: linked })),
      );
    },
    async close() {
      await within(
        flushMs,
        provider.shutdown().catch(() => {}),
      );
    },
  };
}

function spanOf(
  span: SdkSpan,
  { running, parent }: { readonly running: AsyncLocalStorage<Context>; readonly parent: Context },
): Span {
  const context = trace.setSpan(parent, span);
  return {
    traceparent: nameOf(span.spanContext()),
    note(attributes: SpanAttributes) {
      for (const [name, value] of Object.entries(attributes))
        if (value !== undefined) span.setAttribute(name, value);
    },
    end(error) {
      if (error !== undefined)
        span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
    run: (work) => running.run(context, work),
  };
}

/**
 * Whether a trace is recorded is decided by its id, so that all gateways with one ratio record the same traces. A sender may forbid it;
 * it cannot order it. A span with a link is recorded if the linked span is.
 */
function createSampler(ratio: number): Sampler {
  const byId = new TraceIdRatioBasedSampler(ratio);
  return {
    shouldSample(context, traceId, _name, _kind, _attributes, [link]) {
      const cause = trace.getSpanContext(context) ?? link?.context;
      if (cause && !hasFlag(cause)) return { decision: SamplingDecision.NOT_RECORD };
      if (cause && !cause.isRemote) return { decision: SamplingDecision.RECORD_AND_SAMPLED };
      return byId.shouldSample(context, cause?.traceId ?? traceId);
    },
    toString: () => `TollbookSampler{${ratio}}`,
  };
}

function remote(traceparent: unknown): SpanContext[] {
  const named = parseTraceparent(traceparent);
  if (!named) return [];
  const { traceId, spanId } = named;
  const traceFlags = named.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return [{ traceId, spanId, traceFlags, isRemote: true }];
}

/** A span that has ended may still have spans below it: the settlement of a completion runs after the answer. */
function isSampled(context: Context): boolean {
  const span = trace.getSpanContext(context);
  return span !== undefined && hasFlag(span);
}

function hasFlag({ traceFlags }: SpanContext): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

function nameOf(span: SpanContext): string {
  return formatTraceparent({ traceId: span.traceId, spanId: span.spanId, isSampled: hasFlag(span) });
}
