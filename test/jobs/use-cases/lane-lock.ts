import pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import type { TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/wait.ts';

/** Begins a transaction and leaves it open; what is returned commits it. */
export async function holdOpen({ url }: TestDatabase, sql: string): Promise<() => Promise<void>> {
  const owner = new pg.Client(url);
  await owner.connect();
  onTestFinished(() => owner.end());
  await owner.query(`begin; ${sql}`);
  return async () => {
    await owner.query('commit');
  };
}

/** Every append waits until the returned function is called. */
export function holdLane(database: TestDatabase): Promise<() => Promise<void>> {
  return holdOpen(database, 'select from tollbook.lane_lock for update');
}

/** Waits until this many appends wait for a lock. */
export function appendsWait(database: TestDatabase, count: number): Promise<void> {
  return eventually(async () => {
    const { rowCount } = await database.asOwner((owner) =>
      owner.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
           and query like '%tollbook.append%' and pid <> pg_backend_pid()`,
      ),
    );
    expect(rowCount).toBe(count);
  });
}
