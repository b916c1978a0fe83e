import { randomUUID } from 'node:crypto';
import { userOfWallet, type Wallet } from '../store/identity.ts';
import type { Identity } from './context.ts';
import { openUser } from './sessions.ts';

/** RFC 2606 reserves the top-level domain `invalid`, so no mail is ever delivered there. */
const unreachableDomain = 'wallet.invalid';

/** Whether an email address is the placeholder of a user without one. */
export function isUnreachable(email: string): boolean {
  return /[@.]invalid\.?$/i.test(email);
}

/** The user of a wallet, created when there is none. Concurrent calls return the same user. */
export async function openWalletUser(
  ledger: Pick<Identity, 'pool' | 'lane'>,
  wallet: Wallet,
): Promise<string> {
  const newUserId = randomUUID();
  const email = `${newUserId}@${unreachableDomain}`;
  const userId = await userOfWallet(ledger.pool, wallet, { userId: newUserId, name: wallet.address, email });
  if (userId === newUserId) await openUser(ledger, userId);
  return userId;
}
