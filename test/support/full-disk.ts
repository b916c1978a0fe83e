import type { TestDatabase } from './database.ts';

/** Rows of these tables find no room on the disk, until the returned function is called. */
export async function fillDisk(
  { asOwner }: Pick<TestDatabase, 'asOwner'>,
  tables: readonly string[],
): Promise<() => Promise<void>> {
  const run = (text: string) => asOwner((owner) => owner.query(text));
  await run(`create or replace function tollbook.disk_full() returns trigger language plpgsql as
    $$ begin raise exception 'No space left on device' using errcode = '53100'; end $$`);
  for (const table of tables)
    await run(
      `create trigger disk_full before insert or update on tollbook.${table} execute function tollbook.disk_full()`,
    );
  return async () => {
    for (const table of tables) await run(`drop trigger disk_full on tollbook.${table}`);
  };
}
