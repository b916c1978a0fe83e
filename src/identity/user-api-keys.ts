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

/** The maximum of a user's keys that are not revoked. */
const maxKeys = 100;
/** Revoked keys are not limited, so only the latest are listed. */
const maxRevokedListed = 100;
/** More than `maxKeys`: keys created at the same time may exceed it. */
const maxListed = 1_000;

/** What a user may choose for a key. */
export type ApiKeyRequest = Pick<
  Parameters<typeof issueApiKey>[1],
  'name' | 'models' | 'capMicros' | 'budget' | 'expiresAt'
>;

/** A user's valid keys, oldest first; then the revoked ones, latest first. */
export async function listUserApiKeys({ db }: Ledger, { accountId }: SessionUser): Promise<ApiKey[]> {
  const kept = await listKeysOf(db, accountId, { isRevoked: false, limit: maxListed });
  return [...kept, ...(await listKeysOf(db, accountId, { isRevoked: true, limit: maxRevokedListed }))];
}

export type CreatedApiKey =
  | { readonly kind: 'created'; readonly keyId: number; readonly key: string }
  /** The user has the maximum of keys that are not revoked. */
  | { readonly kind: 'too_many' };

/** Creates a key for a user's own account. */
export async function createUserApiKey(
  ledger: Ledger,
  user: SessionUser,
  request: ApiKeyRequest,
): Promise<CreatedApiKey> {
  const kept = await listKeysOf(ledger.db, user.accountId, { isRevoked: false, limit: maxKeys });
  if (kept.length >= maxKeys) return { kind: 'too_many' };
  return {
    kind: 'created',
    ...(await issueApiKey(ledger, { ...request, accountId: user.accountId, isOfUser: true })),
  };
}

/** Revokes a user's own key. False when the user has no such key. */
export function revokeUserApiKey(
  ledger: Ledger,
  { accountId }: SessionUser,
  keyId: number,
): Promise<boolean> {
  return revokeKey(ledger, { keyId, accountId });
}

/** Revokes all keys of a user; returns how many there were. */
export async function revokeUserApiKeys(
  ledger: Ledger,
  { accountId }: Pick<SessionUser, 'accountId'>,
): Promise<number> {
  for (let revoked = 0; ;) {
    const kept = await listKeysOf(ledger.db, accountId, { isRevoked: false, limit: maxKeys });
    if (kept.length === 0) return revoked;
    for (const { keyId } of kept) await revokeKey(ledger, { keyId, accountId });
    revoked += kept.length;
  }
}
