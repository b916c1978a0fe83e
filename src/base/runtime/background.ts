import type { OperatorLog } from '../values/operator-log.ts';
import type { PromiseTracker } from './promise-tracker.ts';

export interface Background {
  /** Work that no answer waits for; a shutdown does. */
  readonly running: PromiseTracker;
  readonly log: Pick<OperatorLog, 'error'>;
}

/** Runs work that no answer waits for. Its failure is logged, with these fields. */
export function inBackground(
  { running, log }: Background,
  work: Promise<unknown>,
  failureMessage: string,
  fields: object = {},
): void {
  void running.add(work.catch((err: unknown) => log.error({ err, ...fields }, failureMessage)));
}
