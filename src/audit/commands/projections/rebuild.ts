import { rebuildProjections } from '../../use-cases/projections/project.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

const eventsAtOnce = 5_000;
const reportEvery = 100_000;

export async function run(): Promise<ExitCode> {
  let reported = 0;
  const events = await withLedger(({ pool }) =>
    rebuildProjections(pool, eventsAtOnce, (seq) => {
      if (seq - reported < reportEvery) return;
      reported = seq;
      fail(`${seq} events`);
    }),
  );
  say(`The read models were rebuilt from ${events} events.`);
  return exitCodes.done;
}
