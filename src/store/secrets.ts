import type { LedgerDatabase } from './database.ts';

/** The key that receipt tokens are made with: the same for every gateway of this database, and never in the ledger. */
export async function readReceiptKey(db: LedgerDatabase): Promise<Buffer> {
  const { value } = await db
    .selectFrom('tollbook.secret')
    .select('value')
    .where('name', '=', 'receipt_token')
    .executeTakeFirstOrThrow();
  return value;
}
