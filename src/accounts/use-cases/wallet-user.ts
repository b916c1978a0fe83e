import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { userOfWallet, type Wallet } from '../store/identity.ts';

/** RFC 2606 reserves the top-level domain `invalid`, so no mail is ever delivered there. */
const unreachableDomain = 'wallet.invalid';

/** Whether an email address is the placeholder of a user without one. */
export function isUnreachable(email: string): boolean {
  return /[@.]invalid\.?$/i.test(email);
}

/** The user of a wallet, created if there is none. Concurrent calls return the same user. */
export function openWalletUser(pool: pg.Pool, wallet: Wallet): Promise<string> {
  const userId = randomUUID();
  return userOfWallet(pool, wallet, {
    userId,
    name: wallet.address,
    email: `${userId}@${unreachableDomain}`,
  });
}
