import { parseArgs } from 'node:util';
import { type OperatorScope, operatorScopes } from '../../../domain/identity/operator-scope.ts';
import { issueOperatorToken } from '../../../identity/operator-tokens.ts';
import { withLedger } from '../../ledger.ts';
import { fail, say } from '../../terminal.ts';

const dayMs = 86_400_000;

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { scope: { type: 'string', multiple: true, default: [] }, days: { type: 'string' } },
  });
  const [name] = positionals;
  const scopes = values.scope.filter(isScope);
  const days = Number(values.days ?? '0');
  const wrong =
    name === undefined || !/^[A-Za-z0-9._-]{1,64}$/.test(name)
      ? 'a token needs a name: 1 to 64 letters, digits, dots, dashes or underscores'
      : scopes.length === 0 || scopes.length < values.scope.length
        ? `name what it may do: --scope ${operatorScopes.join(' | ')}, one or more`
        : !Number.isInteger(days) || days < 0 || days > 3_650
          ? '--days is a whole number up to 3650'
          : undefined;
  if (wrong !== undefined || name === undefined) {
    fail(wrong ?? '');
    return 64;
  }
  const expiresAt = days > 0 ? new Date(Date.now() + days * dayMs) : undefined;
  const { token, tokenId } = await withLedger((ledger) =>
    issueOperatorToken(ledger, { name, scopes, expiresAt }),
  );
  say(token);
  fail(`Token ${tokenId} is shown this once; only its hash is stored.`);
  return 0;
}

function isScope(text: string): text is OperatorScope {
  return operatorScopes.some((scope) => scope === text);
}
