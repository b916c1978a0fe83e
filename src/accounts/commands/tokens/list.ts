import { listTokens, type OperatorToken } from '../../store/operator-tokens.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

export async function run(): Promise<ExitCode> {
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

function standing({ revokedAt, expiresAt, createdAt }: OperatorToken): string {
  if (revokedAt) return `revoked ${revokedAt.toISOString()}`;
  return expiresAt ? `until ${expiresAt.toISOString()}` : `since ${createdAt.toISOString()}`;
}
