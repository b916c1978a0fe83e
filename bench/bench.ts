/** How long to measure and where files go: the same for all parts. */
export interface Bench {
  readonly rounds: number;
  readonly runSecs: number;
  /** Length of the warm-up before the first round, which also finds the request rate. */
  readonly warmSecs: readonly number[];
  /** Removed when the bench ends. */
  readonly dir: string;
  /** Kept after the bench. */
  readonly homeDir: string;
  /** Another checkout of Tollbook, which is measured beside this one. */
  readonly beforeDir: string | undefined;
  /** Scenarios are measured whose title has this text. */
  readonly having: string;
  /** Registers a started program, so that the bench stops it. */
  keep<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T>;
}
