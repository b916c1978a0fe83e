import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import type { LedgerSchema } from './schema.ts';

export type LedgerDatabase = Kysely<LedgerSchema>;

export interface DatabaseOptions {
  /** A PostgreSQL URL; `?host=/path` for a unix socket. */
  readonly url: string;
  readonly maxConnections?: number;
  /** How long a query of a pool may take. */
  readonly queryTimeoutMs?: number;
  /** The role to work as: the writer for a gateway, none for migrations. */
  readonly role?: string | undefined;
  /** How its sessions are named in the database's list of them; default: `tollbook`. */
  readonly applicationName?: string;
  /** Other settings of its sessions. */
  readonly settings?: Partial<Record<keyof typeof sessionSettings, string>>;
  /** Called for connections that broke while idle; the pool replaces them. */
  readonly onError?: (error: Error) => void;
}

/**
 * Settings of every session. A lost peer is noticed within seconds, lock waits are limited, and an idle transaction
 * ends. A commit waits for the disk and for the synchronous standby, whatever the default of the database or role is.
 */
const sessionSettings = {
  synchronous_commit: 'on',
  lock_timeout: '5s',
  statement_timeout: '30s',
  idle_in_transaction_session_timeout: '10s',
  tcp_keepalives_idle: '5',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '15000',
  client_connection_check_interval: '2s',
  timezone: 'UTC',
} as const;

/** The name of a gateway's sessions, by which `tollbook recover` knows that one is running. */
export const gatewaySessions = 'tollbook gateway';

/** Connection settings for one session, shared by the pool and by the lane's own connections. */
export function sessionConfig(options: DatabaseOptions): pg.ClientConfig {
  const role = options.role ? { role: options.role } : {};
  const settings = { ...sessionSettings, ...options.settings, ...role };
  return {
    connectionString: options.url,
    application_name: options.applicationName ?? 'tollbook',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    // without it the system sends the first probe after two hours
    keepAliveInitialDelayMillis: 5_000,
    options: Object.entries(settings)
      .map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\\s]/g, String.raw`\$&`)}`)
      .join(' '),
    types: safeIntegerTypes,
  };
}

const int8Oid = 20;

/** bigint columns here are ids, sequences and counts, all far below 2^53: read as numbers, never silently rounded. */
const safeIntegerTypes: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8Oid && format !== 'binary' ? safeInteger : pg.types.getTypeParser(oid, format),
};

function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`a bigint beyond 2^53: ${text}`);
  return value;
}

/** Longer than the server's statement time-out: past it the network is at fault, not the statement. */
const longestQueryMs = 35_000;

/** A connection whose query is not answered in time is closed, and the query fails as on a broken connection. */
export function openPool(options: DatabaseOptions): pg.Pool {
  const { maxConnections = 10, queryTimeoutMs = longestQueryMs, onError } = options;
  return poolOf({ ...sessionConfig(options), max: maxConnections, query_timeout: queryTimeoutMs }, onError);
}

/** A separate connection to the database of a pool, for queries that must not wait behind others and have a short time-out. */
export function openBeside(pool: pg.Pool, timeoutMs: number): pg.Pool {
  const { options } = pool;
  return poolOf({ ...options, max: 1, query_timeout: timeoutMs, connectionTimeoutMillis: timeoutMs });
}

function poolOf(config: pg.PoolConfig, onError: (error: Error) => void = () => {}): pg.Pool {
  const pool = new pg.Pool(config);
  pool.on('error', onError);
  // the pool does not handle errors of a client in use: one between two queries would end the process
  pool.on('connect', (client) => client.on('error', () => {}));
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

/** Kysely returns every client to the pool as usable: the next query would wait behind an unanswered one. */
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
 * Whether an error means that the database is unreachable: network codes, PostgreSQL's fatal and shutdown errors, a write on a
 * standby, the driver's messages for a connection that broke or was not established.
 */
export function isDatabaseLoss(error: Error & { readonly code?: string | undefined }): boolean {
  if (error instanceof pg.DatabaseError) {
    return error.severity === 'FATAL' || /^(?:08|53|57P)/.test(error.code ?? '') || error.code === readOnly;
  }
  return (
    /^(?:ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH)$/.test(error.code ?? '') ||
    /Connection terminated|timeout exceeded when trying to connect|connection error|Query read timeout/.test(
      error.message,
    )
  );
}

/** Where a database is, for messages; no password. */
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
