import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { migrate } from '../../src/ledger/store/migrations.ts';
import { withClient } from './database.ts';
import { useChain } from './devnet.ts';
import { configText, receiptKey, runnerSecret } from './gateway.ts';
import { listening } from './listening.ts';
import { makeFolder, temporaryFolder, tollbook } from './program.ts';
import { useShared, whenOver } from './shared.ts';

/** What differs from a configuration and an environment in which nothing is wrong. */
export interface DoctorCase {
  readonly change?: (text: string) => string;
  readonly env?: Readonly<Record<string, string>>;
  readonly facilitatorUrl?: string;
  readonly runnerUrl?: string;
  readonly tables?: string;
  readonly args?: readonly string[];
}

interface Said {
  readonly status: string;
  readonly check: string;
  readonly found: string;
  readonly repair?: string;
}

/** A result that is not well. */
export function says(status: 'warn' | 'fail', check: string, found: RegExp, repair: RegExp): Said {
  return {
    status,
    check,
    found: expect.stringMatching(found) as string,
    repair: expect.stringMatching(repair) as string,
  };
}

const quoteKey = 'the-quote-key-of-the-doctors-gateway';
const logKey = '2a'.repeat(32);

/** All that a sound gateway needs, for the tests of one file: chain, facilitator, durable PostgreSQL, something that accepts connections. */
export function useDoctor() {
  const chain = useChain();
  const server = useShared(async () => {
    const folder = makeFolder();
    whenOver(() => rmSync(folder, { recursive: true, force: true }));
    const postgres = await startEmbeddedPostgres({ dir: path.join(folder, 'pg'), durable: true });
    whenOver(() => postgres.stop());
    await withClient(postgres.url(), async (client) => {
      await client.query('create database ledger');
      await client.query('create role gateway login');
    });
    await migrate(postgres.url('ledger'));
    await withClient(postgres.url(), (client) => client.query('grant tollbook_writer_ledger to gateway'));
    return postgres;
  });
  const peer = useShared(() => listening(http.createServer((_, response) => void response.end())));

  /** The address of a database for a user; the ledger's if none is named. */
  const urlFor = (user: string, database = 'ledger'): string =>
    server().url(database).replace('postgres@', `${user}@`);

  /** Runs SQL as the superuser. */
  const admin = (text: string, database = 'postgres') =>
    withClient(server().url(database), (client) => client.query(text));

  /** Runs the command. */
  const doctor = async ({ change = String, env, args = [], tables = '', ...options }: DoctorCase = {}) => {
    const file = path.join(temporaryFolder(), 'gateway.toml');
    const text = configText({
      chain,
      // not used for the text
      database: undefined as never,
      runnerUrl: peer(),
      top: 'quote_key = "env:QUOTE_KEY"',
      tables: `
[alerts]
webhook = "${peer()}"
[log]
origin = "jobs.example/log"
key = "env:LOG_KEY"
[[log.anchors]]
kind = "folder"
location = "anchors"
${tables}`,
      ...options,
    });
    writeFileSync(file, change(text));
    const ended = await tollbook(['doctor', '--config', file, ...args], {
      RUNNER_TOKEN: runnerSecret,
      RECEIPT_KEY: receiptKey,
      QUOTE_KEY: quoteKey,
      LOG_KEY: logKey,
      DATABASE_URL: urlFor('gateway'),
      ...env,
    });
    for (const secret of [runnerSecret, receiptKey, quoteKey, logKey])
      expect(ended.stdout + ended.stderr).not.toContain(secret);
    return { ...ended, file };
  };

  return {
    chain,
    peer,
    urlFor,
    admin,
    doctor,
    /** What is not well, and the exit code. */
    async faults(given: DoctorCase = {}) {
      const { code, stdout } = await doctor({ ...given, args: ['--json'] });
      const { checks } = JSON.parse(stdout) as { checks: Said[] };
      return { code, faults: checks.filter(({ status }) => status !== 'ok') };
    },
    /** A copy of the ledger, for changes of its own. Returns its name. */
    async copyLedger(): Promise<string> {
      const name = `copy_${randomBytes(6).toString('hex')}`;
      await admin(`create database ${name} template ledger`);
      onTestFinished(async () => void (await admin(`drop database ${name} with (force)`)));
      return name;
    },
  };
}
