/** How much is measured, and where: the same for all parts. */
export interface Bench {
  readonly rounds: number;
  readonly runSecs: number;
  /** Of the runs before the first round, until the code is warm and its rate is known. */
  readonly warmSecs: readonly number[];
  /** Gone when the bench ends. */
  readonly dir: string;
  /** Stays. */
  readonly homeDir: string;
  /** Remembers what was started, so that it is stopped. */
  keep<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T>;
}
