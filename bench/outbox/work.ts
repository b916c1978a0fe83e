import { createFailureRuns } from '../../src/calls/use-cases/failure-runs.ts';
import { recordAttempt } from '../../src/calls/use-cases/record-attempt.ts';
import { leaseCalls } from '../../src/calls/store/calls.ts';
import { openDatabase, openPool } from '../../src/ledger/store/database.ts';
import { openLane } from '../../src/ledger/store/lane.ts';

/** How many calls are in work at once, and how many a worker takes together. */
export const atOnce = { inFlight: 400, batch: 100 } as const;

const delivery = {
  maxAttempts: 60,
  backoffBaseMs: 1_000,
  backoffCapMs: 1_800_000,
  timeoutMs: 30_000,
  leaseSecs: 60,
  concurrencyPerRunner: atOnce.inFlight,
  leaseMarginSecs: 30,
  maxResultBytes: 1_048_576,
};

/** What a relay has open. */
export interface Relay {
  /**
   * Seconds until this many calls of service 1, which are ready, were leased, delivered and completed as a relay does it: each with its
   * result and two events in the ledger.
   */
  work(calls: number): Promise<number>;
  stop(): Promise<void>;
}

const outcome = {
  kind: 'completed',
  contentType: 'text/plain',
  result: Buffer.from('done'),
  resultOmitted: false,
} as const;

export function startRelay(url: string): Relay {
  const pool = openPool({ url, maxConnections: 10 });
  const lane = openLane({ url });
  const config = { delivery } as Parameters<typeof recordAttempt>[0]['config'];
  const context = {
    pool,
    db: openDatabase(pool),
    lane,
    config,
    failureRuns: createFailureRuns(),
    onCallReleased() {},
  };
  return {
    async work(calls) {
      let left = calls;
      const startMs = performance.now();
      const worker = async (): Promise<void> => {
        while (left > 0) {
          const leased = await leaseCalls(pool, [1], atOnce.batch, delivery.leaseSecs);
          if (leased.length === 0) return;
          const done = await Promise.all(
            leased.map((call) =>
              recordAttempt(context, call, outcome, { isFirstNews: true, runner: 'bench' }),
            ),
          );
          if (done.some(({ kind }) => kind !== 'recorded')) throw new Error('a lease was lost');
          left -= leased.length;
        }
      };
      await Promise.all(Array.from({ length: atOnce.inFlight / atOnce.batch }, worker));
      if (left > 0) throw new Error(`${left} calls are left`);
      return (performance.now() - startMs) / 1_000;
    },
    async stop() {
      await lane.close(1_000);
      await pool.end();
    },
  };
}
