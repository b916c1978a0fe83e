/** A span as W3C Trace Context names it. */
export interface TraceParent {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Version 00, and the common part of other versions. */
const form = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const invalid = /^ff|-0{32}-|-0{16}-/;

/** Reads the value of a header `traceparent`; undefined if it is missing or malformed. */
export function parseTraceparent(value: unknown): TraceParent | undefined {
  if (typeof value !== 'string' || invalid.test(value)) return undefined;
  const [, traceId, spanId, flags] = form.exec(value) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags ?? '0', 16) & 1) === 1 };
}

export function formatTraceparent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}
