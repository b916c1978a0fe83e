import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { apiKeyHash, apiKeyPrefix, apiKeyRandomBytes, newApiKey } from '../domain/identity/api-key.ts';
import { createApiKey, findApiKeyById, revokeApiKey } from '../store/api-keys.ts';
import type { LedgerDatabase } from '../store/database.ts';
import type { Lane } from '../store/lane.ts';
import { readStream } from '../store/streams.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
  readonly lane: Lane;
}

/** Makes a key and writes that down. The key itself is returned this once; only its SHA-256 is stored. */
export async function issueApiKey(
  { pool, lane }: Pick<Ledger, 'pool' | 'lane'>,
  asked: {
    readonly accountId: number;
    readonly name: string;
    /** Left out: all of them, also those that come later. */
    readonly models?: readonly string[] | undefined;
    /** Left out: as much as its account has. */
    readonly capMicros?: bigint | undefined;
    readonly expiresAt?: Date | undefined;
    /** The operator's token that asked for it. */
    readonly tokenId?: number | undefined;
  },
): Promise<{ readonly keyId: number; readonly key: string }> {
  const { accountId, name, models, capMicros, expiresAt, tokenId } = asked;
  const key = newApiKey(randomBytes(apiKeyRandomBytes));
  const keyId = await createApiKey(pool, {
    accountId,
    hash: apiKeyHash(key),
    prefix: apiKeyPrefix(key),
    name,
    models,
    capMicros,
    expiresAt,
  });
  await lane.append({
    stream: keyStream(keyId),
    events: [
      {
        type: 'key_created',
        data: {
          key_id: keyId,
          account_id: accountId,
          ...(tokenId === undefined ? {} : { token_id: tokenId }),
        },
      },
    ],
  });
  return { keyId, key };
}

/**
 * Ends a key for good, in every process at once; it may be asked for again. False where there is no such key, or it is not
 * of `accountId` where that is named.
 */
export async function revokeKey(
  { pool, db, lane }: Ledger,
  {
    keyId,
    accountId,
    tokenId,
  }: {
    readonly keyId: number;
    readonly accountId?: number | undefined;
    readonly tokenId?: number | undefined;
  },
): Promise<boolean> {
  const key = await findApiKeyById(db, keyId);
  if (!key || (accountId !== undefined && key.accountId !== accountId)) return false;
  await revokeApiKey(pool, keyId);
  await recordRevocation({ pool, lane }, keyId, tokenId);
  return true;
}

/** Once, also where whoever ended the key ended before this was written down. */
async function recordRevocation(
  { pool, lane }: Pick<Ledger, 'pool' | 'lane'>,
  keyId: number,
  tokenId: number | undefined,
): Promise<void> {
  const stream = keyStream(keyId);
  const data = { key_id: keyId, ...(tokenId === undefined ? {} : { token_id: tokenId }) };
  for (;;) {
    const { events } = await readStream(pool, stream);
    if (events.some(({ type }) => type === 'key_revoked')) return;
    const expect = events.length;
    const { outcome } = await lane.append({ stream, expect, events: [{ type: 'key_revoked', data }] });
    if (outcome === 'ok') return;
  }
}

function keyStream(keyId: number): string {
  return `key:${keyId}`;
}
