import { apiKeyNamePattern } from '../rules/api-key.ts';
import { accountNamePattern, parseCredit, creditText } from '../../base/values/price.ts';
import { modelNamePattern } from '../../ledger/rules/fields.ts';
import { issueApiKey, revokeKey } from '../use-cases/api-keys.ts';
import { openCreditAccount, findCreditAccount } from '../use-cases/credit/credit.ts';
import { ArgumentError, readExpiry, readOptions, readOnlyId } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { type BudgetTerms, budgetPeriods, type ListedKey, listApiKeys } from '../store/api-keys.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { fail, notDone, say } from '../../base/terminal/terminal.ts';
import { accountCommands } from '../terminal/descriptions.ts';

export async function create(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(accountCommands['keys create'], args);
  const { account } = values;
  if (account === undefined || !accountNamePattern.test(account))
    throw new ArgumentError(
      '--account NAME is missing or wrong: 1 to 128 letters, digits, or any of . _ : + -; no e-mail address',
    );
  const key = readKeyOptions(values);
  const issued = await withLedger(async (ledger) =>
    issueApiKey(ledger, { ...key, accountId: await openCreditAccount(ledger, account) }),
  );
  say(issued.key);
  fail(`Key ${issued.keyId} of ${account} is shown only now; the database has its hash.`);
  return exitCodes.done;
}

function readKeyOptions(values: {
  readonly name: string;
  readonly models?: string;
  readonly cap?: string;
  readonly budget?: string;
  readonly days?: string;
}) {
  const { name } = values;
  if (!apiKeyNamePattern.test(name)) throw new ArgumentError('--name is one line of up to 64 characters');
  const models = values.models === undefined ? undefined : [...new Set(values.models.split(','))];
  if (models?.some((model) => !modelNamePattern.test(model)))
    throw new ArgumentError('--models names models with commas between: small,vendor/large');
  const capMicros = values.cap === undefined ? undefined : parseCredit(values.cap);
  if (values.cap !== undefined && capMicros === undefined)
    throw new ArgumentError(
      '--cap is an amount such as 5.00: at most nine digits before the point, and six after it',
    );
  return { name, models, capMicros, budget: readBudget(values.budget), expiresAt: readExpiry(values.days) };
}

function readBudget(text: string | undefined): BudgetTerms | undefined {
  if (text === undefined) return undefined;
  const [amount = '', ofPeriod, ...rest] = text.split('/');
  const micros = parseCredit(amount);
  const period = budgetPeriods.find((name) => name === ofPeriod);
  if (micros === undefined || micros === 0n || period === undefined || rest.length > 0)
    throw new ArgumentError('--budget is an amount above 0 and its UTC period: 5.00/day or 100/month');
  return { micros, period };
}

export async function list(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(accountCommands['keys list'], args);
  const { account } = values;
  if (account !== undefined && !accountNamePattern.test(account))
    throw new ArgumentError('--account NAME: 1 to 128 letters, digits, or any of . _ : + -');
  const keys = await withLedger(async ({ pool, db }) => {
    if (account === undefined) return listApiKeys(db);
    const accountId = await findCreditAccount({ pool }, account);
    return accountId === undefined ? undefined : listApiKeys(db, { accountId });
  });
  if (!keys) return notDone(`There is no account ${account}.`);
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

/** Whether a key or a token is valid, and until when. */
export function standing({
  revokedAt,
  expiresAt,
  createdAt,
}: Pick<ListedKey, 'revokedAt' | 'expiresAt' | 'createdAt'>): string {
  if (revokedAt) return `revoked ${revokedAt.toISOString()}`;
  return expiresAt ? `until ${expiresAt.toISOString()}` : `since ${createdAt.toISOString()}`;
}

export async function revoke(args: readonly string[]): Promise<ExitCode> {
  const id = readOnlyId(args, 'name one key: tollbook keys revoke ID, as `tollbook keys list` shows it');
  const done = await withLedger((ledger) => revokeKey(ledger, { keyId: id }));
  if (done) say(`Key ${id} is revoked in every process.`);
  else fail(`There is no key ${id}.`);
  return done ? exitCodes.done : exitCodes.notDone;
}
