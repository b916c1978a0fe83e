/** After the last sign of an outage: single failures in a row are one outage. */
const quietMs = 5_000;

/** Failures of the database are logged once for each outage: every request and every worker meets them. */
export interface Outages {
  /** `begins`: to be logged, once. `known`: part of an outage that was logged. Undefined: another error. */
  hear(error: unknown): 'begins' | 'known' | undefined;
  /** The database works. Returns the log fields if that ends an outage. */
  worked(): { readonly away_secs: number; readonly left_out_lines: number } | undefined;
}

/** @param nowMs a monotonic clock */
export function createOutages(
  isOutage: (error: Error) => boolean,
  nowMs: () => number = () => performance.now(),
): Outages {
  let outage: { readonly beganMs: number; lastMs: number; leftOut: number } | undefined;
  return {
    hear(error) {
      if (!(error instanceof Error) || !isOutage(error)) return undefined;
      if (!outage) {
        outage = { beganMs: nowMs(), lastMs: nowMs(), leftOut: 0 };
        return 'begins';
      }
      outage.lastMs = nowMs();
      outage.leftOut++;
      return 'known';
    },
    worked() {
      if (!outage || nowMs() - outage.lastMs < quietMs) return undefined;
      const { beganMs, lastMs, leftOut } = outage;
      outage = undefined;
      return { away_secs: Math.ceil((lastMs - beganMs) / 1_000), left_out_lines: leftOut };
    },
  };
}
