import { revokeKey } from '../../use-cases/api-keys.ts';
import { ArgumentError, readId } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';

export async function run([text, ...more]: readonly string[]): Promise<ExitCode> {
  const expected = 'name one key: tollbook keys revoke ID, as `tollbook keys list` shows it';
  if (more.length > 0) throw new ArgumentError(expected);
  const id = readId(text, expected);
  const done = await withLedger((ledger) => revokeKey(ledger, { keyId: id }));
  if (done) say(`Key ${id} is revoked in every process.`);
  else fail(`There is no key ${id}.`);
  return done ? exitCodes.done : exitCodes.notDone;
}
