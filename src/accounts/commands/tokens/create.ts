import { accountNamePattern } from '../../../base/values/price.ts';
import { accountScopes, type OperatorScope, operatorScopes } from '../../../base/values/operator-scope.ts';
import { issueOperatorToken } from '../../use-cases/operator-tokens.ts';
import { ArgumentError, readExpiry, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { accountCommands } from '../../terminal/descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(accountCommands['tokens create'], args);
  const [name] = positionals;
  const scopes = values.scope.filter(isScope);
  if (name === undefined || !/^[A-Za-z0-9._-]{1,64}$/.test(name))
    throw new ArgumentError('a token needs a name: 1 to 64 letters, digits, dots, dashes or underscores');
  if (scopes.length === 0 || scopes.length < values.scope.length)
    throw new ArgumentError(`name its scopes: --scope ${operatorScopes.join(' | ')}, one or more`);
  const accounts = values.account.length === 0 ? undefined : values.account;
  if (accounts?.some((account) => !accountNamePattern.test(account)))
    throw new ArgumentError('--account NAME: 1 to 128 letters, digits, or any of . _ : + -');
  if (accounts && scopes.some((scope) => !accountScopes.includes(scope)))
    throw new ArgumentError(`--account limits only the scopes ${accountScopes.join(', ')}`);
  const expiresAt = readExpiry(values.days);
  const { token, tokenId } = await withLedger((ledger) =>
    issueOperatorToken(ledger, { name, scopes, accounts, expiresAt }),
  );
  say(token);
  fail(`Token ${tokenId} is shown only now; the database has its hash.`);
  return exitCodes.done;
}

function isScope(text: string): text is OperatorScope {
  return operatorScopes.some((scope) => scope === text);
}
