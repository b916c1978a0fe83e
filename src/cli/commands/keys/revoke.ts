import { revokeKey } from '../../../identity/api-keys.ts';
import { withLedger } from '../../ledger.ts';
import { fail, say } from '../../terminal.ts';

export async function run([id = '', ...more]: readonly string[]): Promise<number> {
  if (!/^[1-9]\d{0,14}$/.test(id) || more.length > 0) {
    fail('which key? tollbook keys revoke ID, as `tollbook keys list` shows it');
    return 64;
  }
  const done = await withLedger((ledger) => revokeKey(ledger, { keyId: Number(id) }));
  if (done) say(`Key ${id} is revoked, in every process at once.`);
  else fail(`There is no key ${id}.`);
  return done ? 0 : 1;
}
