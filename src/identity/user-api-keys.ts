import type pg from 'pg';
import type { LedgerDatabase } from '../store/database.ts';
import type { Lane } from '../store/lane.ts';
import { type ApiKey, listKeysOf } from '../store/api-keys.ts';
import { issueApiKey, revokeKey } from './api-keys.ts';
import type { SessionUser } from './sessions.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
  readonly lane: Lane;
}

/** How many keys a user may have that were not revoked. */
const maxKeys = 100;
/** Of revoked ones there may be any number. */
const maxRevokedListed = 100;
/** More than there are: two that are made at once may be one too many. */
const maxListed = 1_000;

/** What a user may say about a key of theirs. */
export type ApiKeyRequest = Pick<
  Parameters<typeof issueApiKey>[1],
  'name' | 'models' | 'capMicros' | 'expiresAt'
>;

/** The keys of a user, oldest first; then the last that were revoked, the latest first. */
export async function listUserApiKeys({ db }: Ledger, { accountId }: SessionUser): Promise<ApiKey[]> {
  const kept = await listKeysOf(db, accountId, { isRevoked: false, limit: maxListed });
  return [...kept, ...(await listKeysOf(db, accountId, { isRevoked: true, limit: maxRevokedListed }))];
}

/** Makes a key for a user's own account; `too_many` where there are as many as one may have. */
export async function createUserApiKey(
  ledger: Ledger,
  user: SessionUser,
  asked: ApiKeyRequest,
): Promise<Awaited<ReturnType<typeof issueApiKey>> | 'too_many'> {
  const kept = await listKeysOf(ledger.db, user.accountId, { isRevoked: false, limit: maxKeys });
  if (kept.length >= maxKeys) return 'too_many';
  return issueApiKey(ledger, { ...asked, accountId: user.accountId });
}

/** Ends a key of a user's own for good. False where they have no such key. */
export function revokeUserApiKey(
  ledger: Ledger,
  { accountId }: SessionUser,
  keyId: number,
): Promise<boolean> {
  return revokeKey(ledger, { keyId, accountId });
}
