import { readPeriods } from '../../use-cases/periods/read-periods.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { periodLine } from '../../terminal/period-text.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

export async function run(): Promise<ExitCode> {
  const { periods } = await withLedger(({ pool }) => readPeriods(pool));
  const { all } = periods;
  if (all.length === 0) say('No period is closed.');
  for (const closed of all) say(periodLine(closed));
  return exitCodes.done;
}
