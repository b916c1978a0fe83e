import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import type { LedgerSchema } from './schema.ts';
import { Session, type SessionConfig, SessionError, type SessionOptions, sessionConfig } from './session.ts';

export type LedgerDatabase = Kysely<LedgerSchema>;

export interface DatabaseOptions extends SessionOptions {
  readonly maxConnections?: number;
  /** How long a query of a pool may take. */
  readonly queryTimeoutMs?: number;
  /** Called with each new connection before its first use; it is not used if this rejects. */
  readonly onConnect?: (client: pg.ClientBase) => Promise<void>;
  /** Called for connections that broke while idle; the pool replaces them. */
  readonly onError?: (error: Error) => void;
}

/** Longer than the server's statement time-out: past it the network is at fault, not the statement. */
const longestQueryMs = 35_000;

/** A connection whose query is not answered in time is closed, and the query fails as on a broken connection. */
export function openPool(options: DatabaseOptions): pg.Pool {
  const { maxConnections = 10, queryTimeoutMs = longestQueryMs, onConnect, onError } = options;
  const config = { ...sessionConfig(options), max: maxConnections, query_timeout: queryTimeoutMs };
  // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it, which its types do not say
  return poolOf({ ...config, ...(onConnect && { onConnect }) }, onError);
}

/** A separate connection to the database of a pool, for queries that must not wait for others and have a short time-out. */
export function openBeside(pool: pg.Pool, timeoutMs: number): pg.Pool {
  const options = pool.options as SessionConfig & pg.PoolConfig;
  return poolOf({ ...options, max: 1, query_timeout: timeoutMs, connectionTimeoutMillis: timeoutMs });
}

function poolOf(config: SessionConfig & pg.PoolConfig, onError: (error: Error) => void = () => {}): pg.Pool {
  const pool = new pg.Pool({ ...config, Client: Session as new (given?: SessionConfig) => Session });
  pool.on('error', onError);
  return pool;
}

const databases = new WeakMap<pg.Pool, LedgerDatabase>();

/** Typed queries over a pool that another part owns and closes. */
export function queriesOn(pool: pg.Pool): LedgerDatabase {
  const known = databases.get(pool);
  if (known) return known;
  const database = openDatabase(pool);
  databases.set(pool, database);
  return database;
}

export function openDatabase(pool: pg.Pool): LedgerDatabase {
  const { options } = pool;
  const connect = async (): Promise<PostgresPoolClient> => lend(await pool.connect());
  return new Kysely<LedgerSchema>({
    dialect: new PostgresDialect({ pool: { connect, end: () => pool.end(), options } }),
  });
}

/** The SQLSTATE of a write on a standby: the server was the primary once, or this is not the primary's address. */
const readOnly = '25006';

/** Kysely returns every client to the pool as usable: the next query would wait for an unanswered one. */
function lend(client: pg.PoolClient): PostgresPoolClient {
  let isLost = false;
  const query = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    try {
      return await client.query(text, [...values]);
    } catch (error) {
      isLost ||= !(error instanceof pg.DatabaseError) || error.code === readOnly;
      throw error;
    }
  };
  return { query: query as PostgresPoolClient['query'], release: () => client.release(isLost) };
}

/** Function files and grants name the gateway's role so; in a database it has the name of the database after it. */
export const writerRole = 'tollbook_writer';
/** The same for the role that reads the ledger and writes nothing. */
export const readerRole = 'tollbook_reader';

/**
 * Whether an error means that the database cannot be used: network codes, PostgreSQL's fatal and shutdown errors, a write on a
 * standby, the driver's messages for a connection that broke or was not established, a session that cannot be relied on.
 */
export function isDatabaseLoss(error: Error & { readonly code?: string | undefined }): boolean {
  if (error instanceof pg.DatabaseError) {
    return error.severity === 'FATAL' || /^(?:08|53|57P)/.test(error.code ?? '') || error.code === readOnly;
  }
  return (
    error instanceof SessionError ||
    /^(?:ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH)$/.test(error.code ?? '') ||
    /Connection terminated|timeout exceeded when trying to connect|connection error|Query read timeout/.test(
      error.message,
    )
  );
}

/** A database's place, for messages; no password. */
export interface DatabaseAddress {
  readonly server: string;
  readonly name: string;
  readonly user: string;
}

export function addressOf(url: string): DatabaseAddress {
  const { host, port, database = '', user = '' } = new pg.Client({ connectionString: url });
  return { server: host.startsWith('/') ? host : `${host}:${port}`, name: database, user };
}

const diskFull = '53100';

/** The SQLSTATE with which the database refuses every write: its disk is full, or it is a standby. Undefined for other errors. */
export function writeRefusal(error: unknown): string | undefined {
  const code = error instanceof pg.DatabaseError ? error.code : undefined;
  return code === diskFull || code === readOnly ? code : undefined;
}

/** Whether a table, column, function or schema is missing: the database has no ledger, or not one of this version. */
export function isMissingTable(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^(?:42P01|42703|42883|3F000)$/.test(error.code ?? '');
}

/** Whether this user has no right to do it. */
export function isDenied(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '42501';
}

/** Whether the database refused a value: out of range, malformed, or against a constraint. */
export function isDataError(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^2[23]/.test(error.code ?? '');
}
