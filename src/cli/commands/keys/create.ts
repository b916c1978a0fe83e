import { parseArgs } from 'node:util';
import { apiKeyNamePattern } from '../../../domain/identity/api-key.ts';
import { accountNamePattern, parseCredit } from '../../../domain/credit/price.ts';
import { modelNamePattern } from '../../../domain/events/fields.ts';
import { issueApiKey } from '../../../identity/api-keys.ts';
import { openCreditAccount } from '../../../credit/credit.ts';
import { withLedger } from '../../ledger.ts';
import { fail, say } from '../../terminal.ts';

const dayMs = 86_400_000;
const maxDays = 3_650;

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      account: { type: 'string' },
      name: { type: 'string', default: 'default' },
      models: { type: 'string' },
      cap: { type: 'string' },
      days: { type: 'string' },
    },
  });
  const asked = readAsked(values);
  if ('wrong' in asked) {
    fail(asked.wrong);
    return 64;
  }
  const { account, ...key } = asked;
  const issued = await withLedger(async (ledger) =>
    issueApiKey(ledger, { ...key, accountId: await openCreditAccount(ledger, account) }),
  );
  say(issued.key);
  fail(`Key ${issued.keyId} of ${account} is shown this once; only its hash is stored.`);
  return 0;
}

function readAsked(values: {
  readonly account?: string;
  readonly name: string;
  readonly models?: string;
  readonly cap?: string;
  readonly days?: string;
}) {
  const { account, name } = values;
  if (account === undefined || !accountNamePattern.test(account))
    return { wrong: 'whose key? --account NAME: 1 to 128 letters, digits, or any of . _ : @ + -' };
  if (!apiKeyNamePattern.test(name)) return { wrong: '--name is one line of up to 64 characters' };
  const models = values.models === undefined ? undefined : [...new Set(values.models.split(','))];
  if (models?.some((model) => !modelNamePattern.test(model)))
    return { wrong: '--models names models with commas between: small,vendor/large' };
  const capMicros = values.cap === undefined ? undefined : parseCredit(values.cap);
  if (values.cap !== undefined && capMicros === undefined)
    return {
      wrong: '--cap is an amount such as 5.00: at most nine digits before the point, and six behind it',
    };
  const days = values.days === undefined ? undefined : Number(values.days);
  if (days !== undefined && !(Number.isInteger(days) && days >= 1 && days <= maxDays))
    return { wrong: `--days is a whole number from 1 to ${maxDays}` };
  const expiresAt = days === undefined ? undefined : new Date(Date.now() + days * dayMs);
  return { account, name, models, capMicros, expiresAt };
}
