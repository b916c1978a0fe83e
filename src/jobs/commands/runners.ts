import { runnerName } from '../../base/values/runner-name.ts';
import { pauseRunner, resumeRunner } from '../../calls/use-cases/pause-runner.ts';
import { ArgumentError, readOperator, readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { fail, say } from '../../base/terminal/terminal.ts';
import { jobCommands } from '../terminal/descriptions.ts';

const verbs = {
  pause: { change: pauseRunner, done: 'gets no calls until it is resumed', unchanged: 'is paused already' },
  resume: { change: resumeRunner, done: 'gets calls again', unchanged: 'is not paused' },
} as const;

export const pause = (args: readonly string[]): Promise<ExitCode> => changeRunner(args, 'pause');

export const resume = (args: readonly string[]): Promise<ExitCode> => changeRunner(args, 'resume');

async function changeRunner(args: readonly string[], verb: keyof typeof verbs): Promise<ExitCode> {
  const { values, positionals } = readOptions(jobCommands['runners pause'], args);
  const [name] = positionals;
  if (name === undefined || !runnerName.test(name))
    throw new ArgumentError(`name the runner: tollbook runners ${verb} NAME`);
  const operator = readOperator(values.by);
  const { change, done, unchanged } = verbs[verb];
  const { kind } = await withLedger((ledger) => change(ledger, { name }, { operator }));
  if (kind === 'changed') say(`Runner ${name} ${done}.`);
  else fail(`Runner ${name} ${unchanged}.`);
  return kind === 'changed' ? exitCodes.done : exitCodes.notDone;
}
