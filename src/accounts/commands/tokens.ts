import { accountNamePattern } from '../../base/values/price.ts';
import { accountScopes, type OperatorScope, operatorScopes } from '../../base/values/operator-scope.ts';
import { issueOperatorToken, revokeOperatorToken } from '../use-cases/operator-tokens.ts';
import { ArgumentError, readExpiry, readOptions, readOnlyId } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { fail, say } from '../../base/terminal/terminal.ts';
import { standing } from './keys.ts';
import { accountCommands } from '../terminal/descriptions.ts';
import { listTokens, type OperatorToken } from '../store/operator-tokens.ts';

export async function create(args: readonly string[]): Promise<ExitCode> {
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

export async function list(): Promise<ExitCode> {
  const tokens = await withLedger(({ db }) => listTokens(db));
  if (tokens.length === 0) say('There are no tokens.');
  for (const token of tokens) {
    say(
      `${String(token.tokenId).padStart(4)}  ${token.name.padEnd(24)}  ${token.scopes.join(' ')}${only(token)}  ${standing(token)}`,
    );
  }
  return exitCodes.done;
}

function only({ accounts }: OperatorToken): string {
  return accounts ? ` (${accounts.join(' ')})` : '';
}

export async function revoke(args: readonly string[]): Promise<ExitCode> {
  const id = readOnlyId(
    args,
    'name one token: tollbook tokens revoke ID, as `tollbook tokens list` shows it',
  );
  const done = await withLedger((ledger) => revokeOperatorToken(ledger, id));
  if (done) say(`Token ${id} is revoked in every process.`);
  else fail(`There is no active token ${id}.`);
  return done ? exitCodes.done : exitCodes.notDone;
}
