import { randomUUID } from 'node:crypto';
import type { Address } from '../domain/values/primitives.ts';
import { userOfWallet } from '../store/identity.ts';
import type { Identity } from './context.ts';
import { openUser } from './sessions.ts';

/** No mail is ever sent there: RFC 2606 keeps the name for nobody. */
const nobodysDomain = 'wallet.invalid';

/** Whether a mail address is that of somebody who has none. */
export function isUnreachable(email: string): boolean {
  return /[@.]invalid\.?$/i.test(email);
}

/** The user whose wallet this is, made where there is none. Of many who ask at once, all are told the same one. */
export async function openWalletUser(
  ledger: Pick<Identity, 'pool' | 'lane'>,
  address: Address,
): Promise<string> {
  const asNew = randomUUID();
  const email = `${asNew}@${nobodysDomain}`;
  const userId = await userOfWallet(ledger.pool, address, { userId: asNew, name: address, email });
  if (userId === asNew) await openUser(ledger, userId);
  return userId;
}
