import type { TestDatabase } from './database.ts';

/** What PostgreSQL says of itself is another thing now than what is on record, as in a database that was restored from a dump. */
export async function becomeCopy(database: TestDatabase): Promise<void> {
  await database.asOwner((owner) =>
    owner.query(`update tollbook.database_identity set system_identifier = '1'`),
  );
}
