import type { LedgerDatabase } from './database.ts';

/**
 * The key of list cursors, and of receipt tokens where the configuration names none: the same for every gateway of this database,
 * and never in the ledger.
 */
export async function readReceiptKey(db: LedgerDatabase): Promise<Buffer> {
  const { value } = await db
    .selectFrom('tollbook.secret')
    .select('value')
    .where('name', '=', 'receipt_token')
    .executeTakeFirstOrThrow();
  return value;
}
