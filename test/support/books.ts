import { onTestFinished } from 'vitest';
import { type Logger, pino } from 'pino';
import type { Config } from '../../src/base/config/config.ts';
import { parseConfig } from '../../src/base/config/load.ts';
import { type RunningGateway, startGateway } from '../../src/app/start.ts';
import type { TestDatabase } from './database.ts';
import { testSeed, testSigner } from './log.ts';

export interface BooksOptions {
  readonly origin?: string;
  /** TOML of the top level: the features, by default none. */
  readonly top?: string;
  /** TOML of the table [log]. */
  /** The TOML value of the log's key, and more lines of its table. */
  readonly key?: string;
  readonly log?: string;
  /** TOML of further tables. */
  readonly tables?: string;
  /** Variables beside the log's key. */
  readonly env?: Readonly<Record<string, string>>;
  readonly logger?: Logger;
}

/** The text of a configuration without features: ledger, log and read models only. */
export function booksConfig({
  origin = testSigner.name,
  top = 'features = []',
  key = '"env:LOG_KEY"',
  log = '',
  tables = '',
}: BooksOptions = {}): string {
  return `bind_address = "127.0.0.1:0"
${top}
log_level = "silent"
[log]
origin = "${origin}"
key = ${key}
${log}
${tables}`;
}

export const booksEnv = { LOG_KEY: testSeed.toString('hex'), S3_SECRET: 'AKIATEST:a-secret-of-the-bucket' };

export async function booksConfigOf(options: BooksOptions): Promise<Config> {
  const { config } = await parseConfig(booksConfig(options), {
    file: 'test.toml',
    env: { ...booksEnv, ...options.env },
    constants: { log: { sealEveryMs: 20 } },
    readFile: (path) => Promise.reject(new Error(`no ${path} here`)),
  });
  return config;
}

/** A gateway without features: ledger, log and read models only. Stopped when the test ends. */
export async function startBooks(
  database: TestDatabase,
  options: BooksOptions = {},
): Promise<RunningGateway> {
  const config = await booksConfigOf(options);
  const logger = options.logger ?? pino({ level: 'silent' });
  const gateway = await startGateway({ config, databaseUrl: database.url, logger });
  onTestFinished(async () => void (await gateway.stop()));
  return gateway;
}
