import { readPeriods } from '../../../periods/read-periods.ts';
import { withLedger } from '../../ledger.ts';
import { periodLine } from '../../period-text.ts';
import { say } from '../../terminal.ts';
import { type ExitCode, exitCodes } from '../../exit-codes.ts';

export async function run(): Promise<ExitCode> {
  const { periods } = await withLedger(({ pool }) => readPeriods(pool));
  const { all } = periods;
  if (all.length === 0) say('No period is closed.');
  for (const closed of all) say(periodLine(closed));
  return exitCodes.done;
}
