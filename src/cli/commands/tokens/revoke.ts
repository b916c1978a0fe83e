import { revokeOperatorToken } from '../../../identity/operator-tokens.ts';
import { withLedger } from '../../ledger.ts';
import { fail, say } from '../../terminal.ts';

export async function run([id = '']: readonly string[]): Promise<number> {
  if (!/^[1-9]\d{0,15}$/.test(id)) {
    fail('which token? tollbook tokens revoke ID, as `tollbook tokens list` shows it');
    return 64;
  }
  const done = await withLedger((ledger) => revokeOperatorToken(ledger, Number(id)));
  if (done) say(`Token ${id} is revoked, in every process at once.`);
  else fail(`There is no token ${id} that could be revoked.`);
  return done ? 0 : 1;
}
