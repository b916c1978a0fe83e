import pg from 'pg';

/** Uses one connection as the database's owner. Rejects while the database is unreachable. */
export async function withOwner<T>(url: string, use: (owner: pg.Client) => Promise<T>): Promise<T> {
  const owner = new pg.Client(url);
  owner.on('error', () => {});
  try {
    await owner.connect();
    return await use(owner);
  } finally {
    await owner.end().catch(() => {});
  }
}
