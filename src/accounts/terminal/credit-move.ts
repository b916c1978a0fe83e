import { creditText, parseCredit, requestIdPattern } from '../../base/values/price.ts';
import { findCreditAccount, type grantCredit } from '../use-cases/credit/credit.ts';
import { ArgumentError, readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { fail, say } from '../../base/terminal/terminal.ts';
import { accountCommands } from './descriptions.ts';

/** Changes the credit of an account and prints its balance; `refused` is the message where the account does not allow it. */
export async function moveCredit(
  verb: string,
  args: readonly string[],
  move: typeof grantCredit,
  refused: string,
): Promise<ExitCode> {
  const { values, positionals } = readOptions(accountCommands['credit grant'], args);
  const [account = '', text = '', ...more] = positionals;
  const amountMicros = parseCredit(text);
  if (account === '' || !amountMicros || more.length > 0)
    throw new ArgumentError(
      `name an account and an amount: tollbook credit ${verb} ACCOUNT AMOUNT; the amount is above 0, with at most ` +
        'nine digits before the point and six after it, such as 5.00',
    );
  const { id: requestId } = values;
  if (requestId !== undefined && !requestIdPattern.test(requestId))
    throw new ArgumentError(
      '--id is an idempotency key: 16 to 128 of A-Z, a-z, 0-9, _ and -, such as a UUID',
    );
  const result = await withLedger(async ({ pool, lane }) => {
    const accountId = await findCreditAccount({ pool }, account);
    return accountId === undefined
      ? ({ kind: 'no_account' } as const)
      : move({ pool, lane }, accountId, amountMicros, { requestId });
  });
  if (result.kind === 'no_account') {
    fail(`There is no account ${account}; \`tollbook keys create --account ${account}\` opens it.`);
    return exitCodes.notDone;
  }
  if (result.kind !== 'moved') {
    fail(result.kind === 'not_allowed' ? refused : 'Nothing was done: that id was used for another request.');
    return exitCodes.notDone;
  }
  say(`${account} can spend ${creditText(result.balanceMicros)} now.`);
  return exitCodes.done;
}
