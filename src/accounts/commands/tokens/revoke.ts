import { revokeOperatorToken } from '../../use-cases/operator-tokens.ts';
import { readId } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';

export async function run([text]: readonly string[]): Promise<ExitCode> {
  const id = readId(text, 'name the token: tollbook tokens revoke ID, as `tollbook tokens list` shows it');
  const done = await withLedger((ledger) => revokeOperatorToken(ledger, id));
  if (done) say(`Token ${id} is revoked in every process.`);
  else fail(`There is no active token ${id}.`);
  return done ? exitCodes.done : exitCodes.notDone;
}
