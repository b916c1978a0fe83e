import { processEnvironment } from '../../base/config/environment.ts';
import { loadConfig } from '../../base/config/load.ts';
import { creditText } from '../../base/values/price.ts';
import { eraseUser, type ErasureResult } from '../use-cases/erase-user.ts';
import { eraseMails } from '../../base/peers/mail/mailer.ts';
import { ArgumentError, readOperator, readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { notDone, say } from '../../base/terminal/terminal.ts';
import { accountCommands } from '../terminal/descriptions.ts';
import { setUserDisabled } from '../use-cases/users.ts';

export async function erase(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(accountCommands['users erase'], args);
  const [who] = positionals;
  if (!who) throw new ArgumentError('name one user: tollbook users erase ID | EMAIL | WALLET');
  const operator = readOperator(values.by);
  const mailDir = values.config === undefined ? undefined : await mailDirOf(values.config);
  const { forfeit: forfeits, results: withResults } = values;
  const result = await withLedger((ledger) => eraseUser(ledger, { who, operator, forfeits, withResults }));
  if (result.kind !== 'erased') return refuse(result);
  const mails = mailDir === undefined ? 0 : await eraseMails(mailDir, result.email);
  const { userId, forfeitedMicros, resultsDeleted } = result;
  say(`User ${userId} is erased. The ledger keeps only this id.`);
  if (forfeitedMicros > 0n) say(`Credit that expired: ${creditText(forfeitedMicros)}.`);
  if (withResults) say(`Results that were deleted: ${resultsDeleted}.`);
  if (mailDir === undefined) say('Mails to the user that wait in mail_dir are deleted when their life ends.');
  else say(`Mails that were deleted: ${mails}.`);
  return exitCodes.done;
}

/** The secrets are not needed. */
async function mailDirOf(file: string): Promise<string> {
  const { config } = await loadConfig(file, processEnvironment(), { withoutSecrets: true });
  const dir = config.identity?.mailDir;
  if (dir === undefined) throw new ArgumentError(`${file} names no mail_dir: leave --config out`);
  return dir;
}

function refuse(result: Exclude<ErasureResult, { kind: 'erased' }>): ExitCode {
  switch (result.kind) {
    case 'unknown':
      return notDone(unknownUser);
    case 'several':
      return notDone(severalUsers(result.userIds));
    case 'busy':
      return notDone(
        `The user is not erased: a completion of ${result.account} is running, or its cost may still be corrected, for at most a day. ` +
          'Disable the user, and erase later.',
      );
    case 'has_credit': {
      const { account, balanceMicros } = result;
      const credit = creditText(balanceMicros);
      return notDone(
        `The user is not erased: ${account} has ${credit} of credit. Return it first: refund the top-ups that bought it ` +
          `(tollbook refunds record), or pay it back and run \`tollbook credit expire ${account} ${credit}\`. With --forfeit it ` +
          'expires without being returned.',
      );
    }
  }
}

const unknownUser = 'There is no user with this id, email address or wallet.';

function severalUsers(userIds: readonly string[]): string {
  return `Several users have this wallet: name one by its id, ${userIds.join(' or ')}.`;
}

export const disable = (args: readonly string[]): Promise<ExitCode> => changeUser(args, 'disable');

export const enable = (args: readonly string[]): Promise<ExitCode> => changeUser(args, 'enable');

/** The commands `users disable` and `users enable`. */
async function changeUser(args: readonly string[], verb: 'disable' | 'enable'): Promise<ExitCode> {
  const { values, positionals } = readOptions(accountCommands['users disable'], args);
  const [who] = positionals;
  if (!who) throw new ArgumentError(`name one user: tollbook users ${verb} ID | EMAIL | WALLET`);
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
      return notDone(`User ${change.userId} is ${isDisabled ? 'disabled already' : 'not disabled'}.`);
    case 'several':
      return notDone(severalUsers(change.userIds));
    case 'unknown':
      return notDone(unknownUser);
  }
}
