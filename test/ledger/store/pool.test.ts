import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';

test('a connection that ends while it is lent out fails its next query, and nothing else', async () => {
  const { pool, asOwner } = await createDatabase();
  const client = await pool.connect();
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const ended = new Promise((resolve) => client.once('end', () => resolve(true)));
  await asOwner((owner) => owner.query('select pg_terminate_backend($1)', [rows[0]?.pid]));
  expect(await ended).toBe(true);
  await expect(client.query('select 1')).rejects.toThrow(/not queryable|terminated/);
  client.release(true);
  expect((await pool.query('select 1')).rowCount).toBe(1);
});
