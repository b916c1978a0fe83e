import path from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { send } from './guarded-child.ts';

/** A durable PostgreSQL server that can be stopped, crashed and restarted during a run. */
export interface PostgresServer {
  readonly socketPath: string;
  url(database: string): string;
  /** True while it stops or starts. */
  readonly isAway: () => boolean;
  /** Stops it, with or without an orderly shutdown, and starts it again. */
  restart(how: 'in_order' | 'at_once'): Promise<void>;
  /** Runs a statement in the database `postgres`. */
  run(statement: string): Promise<void>;
  stop(): Promise<void>;
}

/** Shortens crash recovery: it does not sync each file of the databases of other runs. */
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
      // immediate shutdown: no checkpoint, so recovery replays the WAL
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
