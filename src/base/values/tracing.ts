/** Names and values of the program and its configuration, and numbers: never values from a client, a payer or a peer. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanStart {
  /** One of a few names: values that vary belong in the attributes. */
  readonly name: string;
  /** Default `internal`. */
  readonly kind?: 'server' | 'client' | 'internal';
  readonly attributes?: SpanAttributes;
}

/** A step of a request, in a trace. */
export interface Span {
  /** Its name for others, as the header `traceparent` has it. */
  readonly traceparent: string;
  note(attributes: SpanAttributes): void;
  /** @param error if it failed: a machine-readable code */
  end(error?: string): void;
  /** Spans that begin in the work, also after its first wait, are below this one. */
  run<T>(work: () => T): T;
}

/** Where a span belongs that another process has caused, by values of `traceparent`; malformed ones are ignored. */
export interface SpanOrigin {
  readonly parent?: unknown;
  /** That span caused it, but it is a separate trace. */
  readonly link?: unknown;
}

/** Records the steps of a request as the spans of a trace. It never throws or waits. */
export interface Tracing {
  /** Of the span that runs now: to send along. */
  traceparent(): string | undefined;
  /** Begins a span below the one that runs now; undefined if none does, or where its trace is not recorded. */
  begin(start: SpanStart): Span | undefined;
  /** Begins a separate span. */
  beginFrom(start: SpanStart, origin: SpanOrigin): Span;
}

/** What became of a step: more attributes, and its error. */
export interface StepEnd {
  readonly attributes?: SpanAttributes;
  /** A machine-readable code. */
  readonly error?: string | undefined;
}

/** Does a step of the running work, as a span if it is traced. */
export function traceStep<T>(
  tracing: Tracing | undefined,
  start: SpanStart,
  work: () => Promise<T>,
  endOf?: (result: T) => StepEnd,
): Promise<T> {
  const span = tracing?.begin(start);
  return span ? runIn(span, work, endOf) : work();
}

/** Does work in a span, which ends with it. */
export async function runIn<T>(
  span: Span,
  work: () => Promise<T>,
  endOf?: (result: T) => StepEnd,
): Promise<T> {
  let end: StepEnd = { error: 'fault' };
  try {
    const result = await span.run(work);
    end = endOf?.(result) ?? {};
    return result;
  } finally {
    if (end.attributes) span.note(end.attributes);
    span.end(end.error);
  }
}
