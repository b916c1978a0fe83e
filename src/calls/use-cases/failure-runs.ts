/** So many failures in a row mean that a runner does no work. */
const longRun = 5;

export type FailureRuns = ReturnType<typeof createFailureRuns>;

export interface FailureRun {
  readonly runner: string;
  readonly failures: number;
  /** Of the last failure: machine-readable. */
  readonly reason: string;
}

/** How many attempts of each runner have failed in a row in this process. An attempt that ends otherwise than by a failure ends the run. */
export function createFailureRuns() {
  const runs = new Map<string, FailureRun>();
  return {
    noteFailure(runner: string, reason: string): void {
      runs.set(runner, { runner, failures: (runs.get(runner)?.failures ?? 0) + 1, reason });
    },
    noteSuccess: (runner: string): void => void runs.delete(runner),
    /** The runs that cause an alert. */
    long: (): FailureRun[] => [...runs.values()].filter(({ failures }) => failures >= longRun),
  };
}
