import { resumeRunner } from '../../../jobs/pause-runner.ts';
import { ArgumentError } from '../../arguments.ts';
import { withLedger } from '../../ledger.ts';
import { fail, say } from '../../terminal.ts';

export async function run([name]: readonly string[]): Promise<number> {
  if (name === undefined) throw new ArgumentError('name the runner: tollbook runners resume NAME');
  const { kind } = await withLedger((ledger) => resumeRunner(ledger, { name }));
  if (kind === 'changed') say(`Runner ${name} gets calls again.`);
  else fail(`Runner ${name} is not paused.`);
  return kind === 'changed' ? 0 : 1;
}
