import { grantCredit, expireCredit, findCreditAccount } from '../use-cases/credit/credit.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { accountNamePattern, creditText, parseCredit, requestIdPattern } from '../../base/values/price.ts';
import { ArgumentError, readOptions } from '../../base/terminal/arguments.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { notDone, say } from '../../base/terminal/terminal.ts';
import { accountCommands } from '../terminal/descriptions.ts';
import { listAccounts } from '../store/credit.ts';

export function grant(args: readonly string[]): Promise<ExitCode> {
  return moveCredit(
    'grant',
    args,
    grantCredit,
    'Nothing was granted: the balance would be above the maximum.',
  );
}

export function expire(args: readonly string[]): Promise<ExitCode> {
  return moveCredit(
    'expire',
    args,
    expireCredit,
    'Nothing was expired: the account has less credit that is not held.',
  );
}

/** Changes the credit of an account and prints its balance; `refused` is the message if the account does not allow it. */
async function moveCredit(
  verb: string,
  args: readonly string[],
  move: typeof grantCredit,
  refused: string,
): Promise<ExitCode> {
  const { values, positionals } = readOptions(accountCommands['credit grant'], args);
  const [account = '', text = ''] = positionals;
  const amountMicros = parseCredit(text);
  if (!accountNamePattern.test(account) || !amountMicros)
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
  if (result.kind === 'no_account')
    return notDone(`There is no account ${account}; \`tollbook keys create --account ${account}\` opens it.`);
  if (result.kind !== 'moved')
    return notDone(
      result.kind === 'not_allowed' ? refused : 'Nothing was done: that id was used for another request.',
    );
  say(`${account} can spend ${creditText(result.balanceMicros)} now.`);
  return exitCodes.done;
}

export async function list(): Promise<ExitCode> {
  const accounts = await withLedger(({ db }) => listAccounts(db));
  if (accounts.length === 0) say('There are no accounts.');
  for (const { name, balanceMicros, heldMicros, usedMicros } of accounts) {
    const [balance, held, used] = [balanceMicros, heldMicros, usedMicros].map((micros) =>
      creditText(BigInt(micros)),
    );
    say(`${name.padEnd(24)}  balance ${balance}  held ${held}  used ${used}`);
  }
  return exitCodes.done;
}
