import { expect, onTestFinished, test } from 'vitest';
import { readSchedule } from '../../../src/base/values/triggers/cron-schedule.ts';
import { createEventReader } from '../../../src/payments/peers/chain/event-reader.ts';
import { LedgerInconsistentError } from '../../../src/ledger/store/halt.ts';
import { createFiringCounts, type Fire } from '../../../src/jobs/use-cases/triggers/fire.ts';
import { startChainFollower, startScheduleFirer } from '../../../src/jobs/workers/triggers.ts';
import { createDatabase } from '../../support/database.ts';
import { logLines } from '../../support/log-lines.ts';
import { eventually } from '../../support/wait.ts';
import { mintTerms, startEventChain } from '../../jobs/use-cases/triggers/support.ts';

/** A ledger to which nothing can be appended. */
function failing(thrown: Error) {
  let fired = 0;
  const fire: Fire = async () => {
    fired += 1;
    throw thrown;
  };
  return { fire, count: () => fired };
}

const halted = new LedgerInconsistentError({ reason: 'events were lost' });

async function runWorkers(thrown: Error) {
  const { pool } = await createDatabase();
  const chain = await startEventChain();
  onTestFinished(() => chain.stop());
  const terms = mintTerms(chain, { startBlock: await chain.height(), finality: { confirmations: 0 } });
  await chain.mint(1);
  const reader = createEventReader({ ...terms, timeoutMs: 20_000 });
  onTestFinished(() => reader.close());
  const { lines, logger } = logLines();
  const [ofSchedule, ofChain] = [failing(thrown), failing(thrown)];
  const answer = readSchedule('* * * * * *', 'UTC');
  if (answer.kind !== 'schedule') throw new Error(answer.text);
  const cron = {
    text: '* * * * * *',
    timeZone: 'UTC',
    schedule: answer.schedule,
    missed: 'skip',
    missedMost: 1,
    missedAfterSecs: 60,
  } as const;
  const parts = { pool, log: logger, counts: createFiringCounts() };
  const workers = [
    startScheduleFirer({
      ...parts,
      triggers: () => [{ name: 'each-second', terms: cron }],
      fireOf: () => ofSchedule.fire,
    }),
    startChainFollower({
      ...parts,
      triggers: () => [{ name: 'mints', terms }],
      fireOf: () => ofChain.fire,
      readerOf: () => reader,
    }),
  ];
  await eventually(() => expect(Math.min(ofSchedule.count(), ofChain.count())).toBeGreaterThan(0));
  await Promise.all(workers.map((worker) => worker.stop()));
  return lines.map(({ msg }) => msg);
}

test('a firing that the ledger refuses is reported for each kind of trigger', async () => {
  expect(new Set(await runWorkers(new Error('the database is unreachable')))).toEqual(
    new Set([
      'the times of a trigger could not be fired: they are tried again',
      'the events of a trigger could not be recorded: they are read again',
    ]),
  );
});

test('a halted ledger, of which the log says so once, adds no line for each time and event', async () => {
  expect(await runWorkers(halted)).toEqual([]);
});
