export interface Quantiles {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Of latencies in milliseconds. */
export function quantiles(latenciesMs: readonly number[]): Quantiles {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const quantile = (q: number): number => sorted[Math.floor((sorted.length - 1) * q)] ?? 0;
  return { p50Ms: quantile(0.5), p99Ms: quantile(0.99) };
}
