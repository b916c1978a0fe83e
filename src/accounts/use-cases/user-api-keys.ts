import { createHmac } from 'node:crypto';
import { clientOf } from '../../base/values/client-address.ts';
import { apiKeyHash, apiKeyRandomBytes, newApiKey } from '../rules/api-key.ts';
import { type ApiKey, findApiKey, listKeysOf } from '../store/api-keys.ts';
import { findAccountOpening } from '../store/credit.ts';
import { countAttempt } from '../store/identity.ts';
import type { Identity } from './context.ts';
import { issueApiKey, recordCreation, revokeKey } from './api-keys.ts';
import type { SessionUser } from './sessions.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

/** The maximum of a user's keys that are not revoked. */
const maxKeys = 100;
/** Revoked keys are not limited, so only the latest are listed. */
const maxRevokedListed = 100;
const createsPerMinute = 20;
/** Of all users without credit at one client address. */
const strangersPerMinute = 30;
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

/**
 * Counts a key that a user is about to make; returns for how many seconds the user has to wait. Users who never had credit share an
 * allowance: anyone can be as many of them as they like, and each key leaves an event. It is not summed, since only its event tells a key
 * from one that somebody has written into the database.
 */
export async function takeKeyTurn(
  { pool, ipv6Prefix, keyEvents }: Pick<Identity, 'pool' | 'ipv6Prefix' | 'keyEvents'>,
  { userId, accountId }: SessionUser,
  address: string,
): Promise<number> {
  const isStranger = !(await findAccountOpening(pool, { accountId }))?.isRecorded;
  const { retryMs } = await countAttempt(pool, [
    { subject: `keys:${userId}`, perMinute: createsPerMinute },
    ...(isStranger
      ? [{ subject: `keys:${clientOf(address, ipv6Prefix)}`, perMinute: strangersPerMinute }]
      : []),
  ]);
  if (retryMs > 0) return Math.ceil(retryMs / 1_000);
  return isStranger && !keyEvents.take() ? 1 : 0;
}

/** Creates a key for a user's own account. */
export async function createUserApiKey(
  ledger: Ledger,
  user: SessionUser,
  request: ApiKeyRequest,
  bytes?: Buffer,
): Promise<CreatedApiKey> {
  const kept = await listKeysOf(ledger.db, user.accountId, { isRevoked: false, limit: maxKeys });
  if (kept.length >= maxKeys) return { kind: 'too_many' };
  return {
    kind: 'created',
    ...(await issueApiKey(ledger, { ...request, accountId: user.accountId, isOfUser: true, bytes })),
  };
}

/** A sent form is identified by its id; only a client with the session and the gateway's secret can make its key. */
export interface SentForm {
  readonly id: string;
  readonly secret: string;
}

export type CreatedOnce =
  | CreatedApiKey
  /** The form was sent before, and has its key: shown again only for a few minutes. */
  | { readonly kind: 'repeated'; readonly keyId: number; readonly key: string | undefined };

const shownMs = 600_000;

/**
 * Creates a key for a form, once: a form that is sent twice, to any process, has one key. Its bytes are derived from the form's random id,
 * so that the answer to the second one, which is the one that a browser shows, has the same key without its being stored.
 */
export async function createUserApiKeyOnce(
  ledger: Ledger,
  user: SessionUser,
  request: ApiKeyRequest,
  form: SentForm,
): Promise<CreatedOnce> {
  const digest = createHmac('sha256', form.secret).update(`key:${user.sessionId}:${form.id}`).digest();
  const bytes = digest.subarray(0, apiKeyRandomBytes);
  const key = newApiKey(bytes);
  const former = async (): Promise<CreatedOnce | undefined> => {
    const made = await findApiKey(ledger.db, apiKeyHash(key));
    if (!made) return undefined;
    // the process that stored it may have ended before it was recorded: no key is shown that the ledger does not have
    await recordCreation(ledger, made);
    const ageMs = Date.now() + ledger.lane.state.clockOffsetMs - made.createdAt.getTime();
    const isShown = ageMs < shownMs && made.revokedAt === undefined;
    return { kind: 'repeated', keyId: made.keyId, key: isShown ? key : undefined };
  };
  const known = await former();
  if (known) return known;
  try {
    return await createUserApiKey(ledger, user, request, bytes);
  } catch (error) {
    // another process, or the other half of a double click, was first: the hash is unique
    const made = await former();
    if (made) return made;
    throw error;
  }
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
