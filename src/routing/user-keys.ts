import type pg from 'pg';
import type { LedgerDatabase } from '../store/database.ts';
import type { Lane } from '../store/lane.ts';
import { listApiKeys, type ListedKey } from '../store/api-keys.ts';
import { issueApiKey, revokeKey } from './api-keys.ts';
import type { SessionUser } from './sessions.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
  readonly lane: Lane;
}

/** How many keys that still hold a user may have. */
const maxKeys = 100;
/** Of those listed, revoked ones included. */
const maxListed = 1_000;

/** What a user may say about a key of theirs. */
export type AskedKey = Pick<Parameters<typeof issueApiKey>[1], 'name' | 'models' | 'capMicros' | 'expiresAt'>;

/** The keys of a user, oldest first, those that hold no more included. */
export function listUserKeys({ db }: Ledger, { accountId }: SessionUser): Promise<ListedKey[]> {
  return listApiKeys(db, { accountId, limit: maxListed });
}

/** Makes a key for a user's own account; `too_many` where there are as many as one may have. */
export async function createUserKey(
  ledger: Ledger,
  user: SessionUser,
  asked: AskedKey,
): Promise<Awaited<ReturnType<typeof issueApiKey>> | 'too_many'> {
  const keys = await listUserKeys(ledger, user);
  const held = keys.filter(({ revokedAt }) => revokedAt === undefined);
  if (held.length >= maxKeys || keys.length >= maxListed) return 'too_many';
  return issueApiKey(ledger, { ...asked, accountId: user.accountId });
}

/** Ends a key of a user's own for good. False where they have no such key. */
export function revokeUserKey(ledger: Ledger, { accountId }: SessionUser, keyId: number): Promise<boolean> {
  return revokeKey(ledger, { keyId, accountId });
}
