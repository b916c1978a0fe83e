import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import pg from 'pg';
import { late, within } from '../../base/runtime/within.ts';

export interface SessionOptions {
  /** A PostgreSQL URL; `?host=/path` for a unix socket. */
  readonly url: string;
  /** The role to work as: the writer for a gateway, none for migrations. */
  readonly role?: string | undefined;
  /** Other settings of its sessions. */
  readonly settings?: Partial<Record<keyof typeof sessionSettings | 'default_transaction_read_only', string>>;
}

/**
 * Settings of every session, whatever the defaults of the database, the user and the URL are. A commit waits for the disk and for the
 * synchronous standby. A lost peer is noticed within seconds, lock waits are limited, and an idle transaction ends. The others are what
 * statements and the reading of their results rely on.
 */
const sessionSettings = {
  synchronous_commit: 'on',
  lock_timeout: '5s',
  statement_timeout: '30s',
  idle_in_transaction_session_timeout: '10s',
  idle_session_timeout: '0',
  transaction_timeout: '0',
  tcp_keepalives_idle: '5',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '15000',
  client_connection_check_interval: '2s',
  default_transaction_isolation: 'read committed',
  search_path: 'pg_catalog, pg_temp',
  timezone: 'UTC',
  datestyle: 'ISO, MDY',
  intervalstyle: 'postgres',
  extra_float_digits: '1',
  bytea_output: 'hex',
  client_encoding: 'UTF8',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  row_security: 'on',
} as const;

/** PostgreSQL 15 and 16 lack it. */
const newerSettings: readonly string[] = ['transaction_timeout'];

/** Only a superuser may set it, to the same value too. With another one, the triggers that keep events from being changed do not run. */
const requiredSettings = { session_replication_role: 'origin' } as const;

export interface SessionConfig extends pg.ClientConfig {
  readonly session: Readonly<Record<string, string>>;
}

/** What `Session` is made of: of a pool too, whose clients they are. */
export function sessionConfig({ url, role, settings }: SessionOptions): SessionConfig {
  return {
    connectionString: url,
    application_name: 'tollbook',
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    // without it the system sends the first probe after two hours
    keepAliveInitialDelayMillis: 5_000,
    types: safeIntegerTypes,
    session: { ...sessionSettings, ...settings, ...(role && { role }) },
  };
}

const connectTimeoutMs = 5_000;

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

/** A new session does not fit the guarantees. It was closed before any statement of ours. */
export class SessionError extends Error {
  override readonly name = 'SessionError';
  /** The setting that has another value than it must have, if that is the reason. */
  readonly setting: string | undefined;

  constructor(what: string, { setting, ...options }: ErrorOptions & { readonly setting?: string } = {}) {
    super(
      `DATABASE_URL leads to a database session that the ledger cannot rely on: ${what}. Nothing was recorded or charged over it. Let ` +
        'DATABASE_URL lead to PostgreSQL itself, or to a connection pooler in session mode ' +
        '(docs/operations/capacity.md#connections-to-postgresql)',
      options,
    );
    this.setting = setting;
  }
}

/**
 * A connection to the ledger's database. Before its first use it is proven that one server process serves it alone, for settings are
 * that process's; then they are made, over those of the URL, and read back in another transaction. That costs three round trips, and
 * none later. Connecting fails with a SessionError if that is not so.
 */
export class Session extends pg.Client {
  /** Of the server, as it said at the start: behind a connection pooler, the pooler's own number. */
  declare readonly processID: number | null;
  readonly #config: SessionConfig;

  constructor(config: SessionConfig) {
    super(config);
    this.#config = config;
    // one between two queries would end the process: the next query fails by it
    this.on('error', ignore);
  }

  override connect(): Promise<this>;
  override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void;
  override connect(callback?: (...answer: never[]) => void): Promise<this> | void {
    const connected = this.#connect();
    if (!callback) return connected;
    // as the driver's pool calls it
    const answer = callback as (error: Error | null, client?: pg.Client) => void;
    connected.then(
      () => answer(null, this),
      (error: Error) => answer(error),
    );
  }

  async #connect(): Promise<this> {
    await super.connect();
    try {
      if ((await within(connectTimeoutMs, this.#prepare())) === late)
        throw new Error('Connection terminated: the session was not prepared in time');
    } catch (error) {
      // not in order: it might wait for the answer that did not come
      this.#socket().destroy();
      throw error;
    }
    return this;
  }

  #socket(): { destroy(): void } {
    return (this as unknown as { connection: { stream: { destroy(): void } } }).connection.stream;
  }

  async #prepare(): Promise<void> {
    // first: settings would stay in a process that belongs to others as well
    const [pid] = await this.#row(['pg_backend_pid()::text']);
    if (Number(pid) !== this.processID) await this.#proveOwn();
    const needed = { ...(await this.#make()), ...requiredSettings };
    const names = Object.keys(needed);
    const found = await this.#row(names.map((name) => `current_setting(${pg.escapeLiteral(name)}, true)`));
    for (const [index, [name, value]] of Object.entries(needed).entries())
      if (found[index] !== value)
        throw new SessionError(`${name} has to be ${value}, and is ${found[index] ?? 'not set'}`, {
          setting: name,
        });
  }

  /** Makes the settings, and returns them as the server writes them. */
  async #make(): Promise<Record<string, string>> {
    const names = Object.keys(this.#config.session);
    // raw SQL: settings of the session; in one simple-protocol message
    const calls = Object.entries(this.#config.session).map(([name, value]) => {
      const [own, wanted] = [pg.escapeLiteral(name), pg.escapeLiteral(value)];
      const call = `set_config(${own}, ${wanted}, false)`;
      return newerSettings.includes(name)
        ? `case when current_setting(${own}, true) is not null then ${call} end`
        : call;
    });
    try {
      const values = await this.#row(calls);
      const made = names.flatMap((name, index) => {
        const value = values[index];
        return typeof value === 'string' ? [[name, value] as const] : [];
      });
      return Object.fromEntries(made);
    } catch (error) {
      // its class says whether the server refused a setting, or went away
      if (!(error instanceof pg.DatabaseError) || !/^(?:22|42)/.test(error.code ?? '')) throw error;
      throw new SessionError(`the server refuses its settings: ${error.message}`, { cause: error });
    }
  }

  /**
   * Behind a connection pooler: it keeps one process for this connection, also between transactions, if a notification for that process
   * arrives here while this connection asks nothing. In transaction mode, no connection gets it. The pooler needs one more connection for that.
   */
  async #proveOwn(): Promise<void> {
    const channel = pg.escapeIdentifier(`tollbook-${randomUUID()}`);
    await this.query(`listen ${channel}`);
    const waiting = new AbortController();
    const heard = once(this, 'notification', waiting).catch(ignore);
    const { session: _, ...config } = this.#config;
    const other = new pg.Client({ ...config, connectionTimeoutMillis: proofTimeoutMs });
    other.on('error', ignore);
    try {
      const notified = other.connect().then(() => other.query(`notify ${channel}`));
      const isHeard = notified.then(() => heard);
      isHeard.catch(ignore);
      if ((await within(proofTimeoutMs, isHeard)) === late)
        throw new SessionError(
          'a connection pooler gives its server process to other connections between transactions, as in transaction mode, or has no ' +
            `further connection to disprove that: a notification for its process did not arrive within ${proofTimeoutMs} ms`,
        );
    } finally {
      waiting.abort();
      other.end().catch(ignore);
    }
    await this.query(`unlisten ${channel}`);
  }

  async #row(columns: readonly string[]): Promise<(string | null)[]> {
    const text = `select ${columns.map((column, index) => `${column} as c${index}`).join(', ')}`;
    const { rows } = await this.query<(string | null)[]>({ text, rowMode: 'array' });
    return rows[0] ?? [];
  }
}

/** In addition to the time for connecting. */
const proofTimeoutMs = 2_000;

function ignore(): void {}

/** @throws SessionError if the session does not fit the guarantees */
export async function openSession(options: SessionOptions): Promise<Session> {
  const session = new Session(sessionConfig(options));
  await session.connect();
  return session;
}
