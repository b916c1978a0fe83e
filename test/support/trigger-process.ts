import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { createFailureRuns } from '../../src/calls/use-cases/failure-runs.ts';
import type { TriggerContext } from '../../src/jobs/use-cases/triggers/trigger-call.ts';
import { writerRole } from '../../src/ledger/store/database.ts';
import { openLane } from '../../src/ledger/store/lane.ts';
import { readLedgerId } from '../../src/ledger/store/secrets.ts';
import type { TestDatabase } from './database.ts';
import type { TestChain } from './devnet.ts';
import { testConfig } from './gateway.ts';

/** What triggers need of a process of a gateway. */
export async function triggerProcess(
  chain: TestChain,
  database: TestDatabase,
  tables = '',
): Promise<TriggerContext> {
  const config = await testConfig({ database, chain, runnerUrl: 'http://127.0.0.1:1/', tables });
  const lane = openLane({ url: database.url, role: writerRole, flushers: 1 });
  onTestFinished(() => lane.close(1_000));
  await lane.refresh();
  return {
    config,
    lane,
    pool: database.pool,
    db: database.db,
    log: pino({ level: 'silent' }),
    failureRuns: createFailureRuns(),
    onCallReleased() {},
    tooLate: () => false,
    quoteRealm: { ledgerId: await readLedgerId(database.db) },
  };
}
