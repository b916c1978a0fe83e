import { rebuildProjections } from '../../use-cases/projections/project.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

const eventsAtOnce = 5_000;
const reportEvery = 100_000;

export async function run(): Promise<ExitCode> {
  let reported = 0;
  const { seq, differences } = await withLedger(({ pool }) =>
    rebuildProjections(pool, eventsAtOnce, (done) => {
      if (done - reported < reportEvery) return;
      reported = done;
      fail(`${done} events`);
    }),
  );
  say(`The read models were rebuilt from ${seq} events.`);
  if (differences.length === 0) return exitCodes.done;
  fail(
    'The former postings, balances or open items were not those of the events; the rebuilt ones are. Find out who has changed them. The first differences:',
  );
  for (const { table, isOfFormer, row } of differences)
    fail(`${isOfFormer ? 'only before' : 'only now'}: ${table} ${JSON.stringify(row)}`);
  return exitCodes.finding;
}
