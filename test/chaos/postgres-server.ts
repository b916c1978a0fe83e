import path from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { send } from './guarded-child.ts';

/** A durable PostgreSQL of our own that can go away in the middle of everything and comes back. */
export interface PostgresServer {
  readonly socketPath: string;
  url(database: string): string;
  /** True while it is going down or coming up. */
  readonly isAway: () => boolean;
  /** Ends it, in order or at once, and starts it again. */
  restart(how: 'in_order' | 'at_once'): Promise<void>;
  /** Runs a statement in the database `postgres`. */
  run(statement: string): Promise<void>;
  stop(): Promise<void>;
}

/** After a crash it need not look at every file of every database that other runs left. */
const settings = { recovery_init_sync_method: 'syncfs' };

export async function startPostgresServer(dir: string): Promise<PostgresServer> {
  const start = (): Promise<EmbeddedPostgres> => startEmbeddedPostgres({ dir, durable: true, settings });
  let server = await start();
  let isAway = false;
  const host = new URLSearchParams(server.url().split('?', 2)[1]).get('host') ?? '';
  return {
    socketPath: path.join(host, '.s.PGSQL.5432'),
    url: (database) => server.url(database),
    isAway: () => isAway,
    async restart(how) {
      isAway = true;
      // an immediate shutdown: no checkpoint, what was committed comes back from the log
      if (how === 'at_once') send(server.pid, 'SIGQUIT');
      await server.stop();
      server = await start();
      isAway = false;
    },
    async run(statement) {
      const client = new pg.Client(server.url('postgres'));
      await client.connect();
      try {
        await client.query(statement);
      } finally {
        await client.end();
      }
    },
    stop: () => server.stop(),
  };
}
