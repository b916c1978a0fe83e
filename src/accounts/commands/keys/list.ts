import { creditText } from '../../../base/values/price.ts';
import { findCreditAccount } from '../../use-cases/credit/credit.ts';
import { type ListedKey, listApiKeys } from '../../store/api-keys.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { accountCommands } from '../../terminal/descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(accountCommands['keys list'], args);
  const { account } = values;
  const keys = await withLedger(async ({ pool, db }) => {
    if (account === undefined) return listApiKeys(db);
    const accountId = await findCreditAccount({ pool }, account);
    return accountId === undefined ? undefined : listApiKeys(db, { accountId });
  });
  if (!keys) {
    fail(`There is no account ${account}.`);
    return exitCodes.notDone;
  }
  if (keys.length === 0) say('There are no keys.');
  for (const key of keys) say(line(key));
  return exitCodes.done;
}

function line(key: ListedKey): string {
  const { keyId, account, name, spentMicros, capMicros, budget, models, lastUsedAt } = key;
  const cap = capMicros === undefined ? '' : ` of ${creditText(BigInt(capMicros))}`;
  return [
    String(keyId).padStart(4),
    account.padEnd(24),
    name.padEnd(16),
    `spent ${creditText(BigInt(spentMicros))}${cap}`,
    ...(budget
      ? [
          `${creditText(BigInt(budget.spentMicros))} of ${creditText(BigInt(budget.micros))} this ${budget.period}`,
        ]
      : []),
    lastUsedAt ? `used ${lastUsedAt.toISOString()}` : 'never used',
    standing(key),
    ...(models ? [`for ${models.join(',')}`] : []),
  ].join('  ');
}

function standing({ revokedAt, expiresAt, createdAt }: ListedKey): string {
  if (revokedAt) return `revoked ${revokedAt.toISOString()}`;
  return expiresAt ? `until ${expiresAt.toISOString()}` : `since ${createdAt.toISOString()}`;
}
