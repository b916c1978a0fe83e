import { setUserDisabled } from '../use-cases/users.ts';
import { ArgumentError, readOperator, readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { fail, say } from '../../base/terminal/terminal.ts';
import { accountCommands } from './descriptions.ts';

/** The commands `users disable` and `users enable`. */
export async function changeUser(args: readonly string[], verb: 'disable' | 'enable'): Promise<ExitCode> {
  const { values, positionals } = readOptions(accountCommands['users disable'], args);
  const [who, ...more] = positionals;
  if (who === undefined || more.length > 0)
    throw new ArgumentError(`name one user: tollbook users ${verb} ID | EMAIL | WALLET`);
  const operator = readOperator(values.by);
  const isDisabled = verb === 'disable';
  const change = await withLedger((ledger) => setUserDisabled(ledger, { who, operator, isDisabled }));
  switch (change.kind) {
    case 'changed':
      if (isDisabled)
        say(`User ${change.userId} is disabled, and ${change.sessionsEnded} sessions have ended.`);
      else say(`User ${change.userId} can sign in again, and the keys are valid again.`);
      return exitCodes.done;
    case 'unchanged':
      fail(`User ${change.userId} is ${isDisabled ? 'disabled already' : 'not disabled'}.`);
      return exitCodes.notDone;
    case 'several':
      fail(`Several users have this wallet: name one by its id, ${change.userIds.join(' or ')}.`);
      return exitCodes.notDone;
    case 'unknown':
      fail('There is no user with this id, email address or wallet.');
      return exitCodes.notDone;
  }
}
