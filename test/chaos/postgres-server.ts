import { rmSync } from 'node:fs';
import path from 'node:path';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { send } from './guarded-child.ts';
import {
  backUp,
  type Backup,
  makeSynchronous,
  serverSettings,
  type Standby,
  startFrom,
  startStandby,
} from './postgres-backup.ts';
import { withOwner } from './sql.ts';

/** A durable PostgreSQL server that can be stopped, crashed, restarted and replaced during a run. */
export interface PostgresServer {
  /** It changes when another server takes over. */
  readonly socketPath: () => string;
  url(database: string): string;
  /** True while it stops or starts. */
  readonly isAway: () => boolean;
  /** Stops it, with or without an orderly shutdown, and starts it again. */
  restart(how: 'in_order' | 'at_once'): Promise<void>;
  /** Copies its files while it runs. */
  backUp(): Promise<Backup>;
  /** A standby from a backup, which streams from now on. */
  follow(backup: Backup, how: 'synchronous' | 'asynchronous'): Promise<Standby>;
  /** Crashes it, and another server takes its place: a standby, or one from a backup. */
  replaceBy(other: Standby | Backup): Promise<void>;
  /** Runs a statement in the database `postgres`. */
  run(statement: string): Promise<void>;
  stop(): Promise<void>;
}

export async function startPostgresServer(dir: string): Promise<PostgresServer> {
  let count = 0;
  const nextDir = (): string => `${dir}-${++count}`;
  let home = nextDir();
  const start = (): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({ dir: home, durable: true, settings: serverSettings });
  let server = await start();
  let isAway = false;
  const socketDir = (): string => new URLSearchParams(server.url().split('?', 2)[1]).get('host') ?? '';
  return {
    socketPath: () => path.join(socketDir(), '.s.PGSQL.5432'),
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
    backUp: () => backUp(server.url(), nextDir()),
    async follow(backup, how) {
      const standby = startStandby(backup, { url: server.url(), socketDir: socketDir() });
      await standby.untilStreaming();
      if (how === 'synchronous') await makeSynchronous(server.url());
      return standby;
    },
    async replaceBy(other) {
      isAway = true;
      send(server.pid, 'SIGQUIT');
      await server.stop();
      rmSync(home, { recursive: true, force: true });
      server = await ('promote' in other ? other.promote() : startFrom(other));
      home = `${dir}-${count}`;
      isAway = false;
    },
    run: (statement) =>
      withOwner(server.url('postgres'), async (client) => void (await client.query(statement))),
    stop: () => server.stop(),
  };
}
