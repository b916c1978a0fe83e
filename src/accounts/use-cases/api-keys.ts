import { randomBytes } from 'node:crypto';
import type { LedgerEvent } from '../../ledger/rules/event.ts';
import { apiKeyHash, apiKeyRandomBytes, newApiKey } from '../rules/api-key.ts';
import { type BudgetTerms, createApiKey, findApiKeyById, revokeApiKey } from '../store/api-keys.ts';
import { findAccount } from '../store/credit.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

/** Creates a key and records it. The key itself is returned only here; the database stores its SHA-256. */
export async function issueApiKey(
  { pool, lane }: Pick<Ledger, 'pool' | 'lane'>,
  request: {
    readonly accountId: number;
    readonly name: string;
    /** When omitted: all models, later ones included. */
    readonly models?: readonly string[] | undefined;
    /** When omitted: only the account's balance limits the key. */
    readonly capMicros?: bigint | undefined;
    /** When omitted: none, only the cap and the balance limit it. */
    readonly budget?: BudgetTerms | undefined;
    readonly expiresAt?: Date | undefined;
    /** The operator's token that requested it. */
    readonly tokenId?: number | undefined;
    /** Default: false, an operator made it. */
    readonly isOfUser?: boolean;
    /** What the key is made of. Default: new random bytes. */
    readonly bytes?: Buffer | undefined;
  },
): Promise<{ readonly keyId: number; readonly key: string }> {
  const { accountId, name, models, capMicros, budget, expiresAt, tokenId, isOfUser = false } = request;
  const key = newApiKey(request.bytes ?? randomBytes(apiKeyRandomBytes));
  const keyId = await createApiKey(pool, {
    accountId,
    hash: apiKeyHash(key),
    name,
    models,
    capMicros,
    expiresAt,
    isOfUser,
    budget,
  });
  await recordCreation({ pool, lane }, { keyId, accountId, tokenId });
  return { keyId, key };
}

/**
 * Revokes a key in every process immediately; may be repeated. False when there is no such key, or it belongs to another account
 * than `accountId`, or than those in `accounts`.
 */
export async function revokeKey(
  { pool, db, lane }: Ledger,
  {
    keyId,
    accountId,
    accounts,
    tokenId,
  }: {
    readonly keyId: number;
    readonly accountId?: number | undefined;
    /** By their names. */
    readonly accounts?: readonly string[] | undefined;
    readonly tokenId?: number | undefined;
  },
): Promise<boolean> {
  const key = await findApiKeyById(db, keyId);
  if (!key || (accountId !== undefined && key.accountId !== accountId)) return false;
  if (accounts !== undefined) {
    const account = await findAccount(db, { accountId: key.accountId });
    if (!account || !accounts.includes(account.name)) return false;
  }
  await revokeApiKey(pool, keyId);
  await recordRevocation({ pool, lane }, keyId, tokenId);
  return true;
}

/** Records that a key was made, once, even if the process that stored the key ended before it was recorded. */
export function recordCreation(
  ledger: Pick<Ledger, 'pool' | 'lane'>,
  {
    keyId,
    accountId,
    tokenId,
  }: { readonly keyId: number; readonly accountId: number; readonly tokenId?: number | undefined },
): Promise<void> {
  const data = {
    key_id: keyId,
    account_id: accountId,
    ...(tokenId === undefined ? {} : { token_id: tokenId }),
  };
  return recordOnce(ledger, keyId, { type: 'key_created', data }, 0);
}

/** Records the revocation once, even if the process that revoked the key ended before it was recorded. */
function recordRevocation(
  ledger: Pick<Ledger, 'pool' | 'lane'>,
  keyId: number,
  tokenId: number | undefined,
): Promise<void> {
  const data = { key_id: keyId, ...(tokenId === undefined ? {} : { token_id: tokenId }) };
  return recordOnce(ledger, keyId, { type: 'key_revoked', data }, 1);
}

/** @param likely how many events the key has so far, in all likelihood */
async function recordOnce(
  { pool, lane }: Pick<Ledger, 'pool' | 'lane'>,
  keyId: number,
  event: Extract<LedgerEvent, { type: 'key_created' | 'key_revoked' }>,
  likely: number,
): Promise<void> {
  const stream = keyStream(keyId);
  for (let expect = likely; ;) {
    const { outcome } = await lane.append({ stream, expect, events: [event] });
    if (outcome === 'ok') return;
    const { events } = await readStream(pool, stream);
    if (events.some(({ type }) => type === event.type)) return;
    expect = events.length;
  }
}

function keyStream(keyId: number): string {
  return `key:${keyId}`;
}
