import type { LedgerDatabase } from './database.ts';

/**
 * The key of list cursors, and of receipt tokens if the configuration names none: the same for every gateway of this database,
 * and never in the ledger.
 */
export function readReceiptKey(db: LedgerDatabase): Promise<Buffer> {
  return readValue(db, 'receipt_token');
}

/** Tells this ledger from every other, copies of it excepted: hex, and no secret. */
export async function readLedgerId(db: LedgerDatabase): Promise<string> {
  return (await readValue(db, 'ledger_id')).toString('hex');
}

async function readValue(db: LedgerDatabase, name: string): Promise<Buffer> {
  const { value } = await db
    .selectFrom('tollbook.secret')
    .select('value')
    .where('name', '=', name)
    .executeTakeFirstOrThrow();
  return value;
}
