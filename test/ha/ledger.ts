import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { childEnvironment } from '../support/child-environment.ts';
import { migrate } from '../chaos/environment.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import type { Cluster } from './cluster.ts';
import { ports } from './page-files.ts';

/** The ledger's URL by way of an address. Roles and password are those of the page. */
export function ledgerUrl(hostAndPort: string, user = 'gateway'): string {
  return `postgresql://${user}:SECRET@${hostAndPort}/ledger`;
}

/** Creates the role, the database and its tables, as the page does. */
export async function createLedger(primary: string): Promise<void> {
  const admin = new pg.Client(`postgresql://postgres:SECRET@${primary}/postgres`);
  await admin.connect();
  try {
    await admin.query(`create role gateway login createrole password 'SECRET'`);
    await admin.query('create database ledger owner gateway');
  } finally {
    await admin.end();
  }
  await migrate(repositoryRoot, ledgerUrl(primary));
}

/** Runs a query once, over its own connection; repeats it while the database cannot be reached. */
export async function ask<Row extends pg.QueryResultRow>(
  url: string,
  text: string,
  timeoutMs: number,
): Promise<Row[]> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: 2_000,
      query_timeout: 10_000,
    });
    client.on('error', () => {});
    try {
      await client.connect();
      return (await client.query<Row>(text)).rows;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(200);
    } finally {
      await client.end().catch(() => {});
    }
  }
}

/** What `tollbook verify` objects to: every event, and every checkpoint that was anchored. */
export async function faultsOfLog(url: string, anchors: string, verifierKey: string): Promise<string[]> {
  const args = ['src/app/cli/tollbook.ts', 'verify', '--checkpoint', anchors, '--pubkey', verifierKey];
  const env = { ...childEnvironment(), DATABASE_URL: url };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: repositoryRoot, env }, (error, stdout, stderr) =>
      resolve(error ? [`tollbook verify: ${stdout}${stderr}`] : []),
    );
  });
}

/** How the nodes differ from each other once each has had time to replay what the primary has; empty if they do not. */
export async function differencesOfNodes(cluster: Cluster, timeoutMs: number): Promise<string[]> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const hashes = await Promise.all(
      cluster.nodes.map(async ({ name, address }) => ({
        name,
        found: await hashOfLedger(address, timeoutMs),
      })),
    );
    if (new Set(hashes.map(({ found }) => found)).size === 1) return [];
    if (Date.now() > deadline) return hashes.map(({ name, found }) => `${name} has ${found}`);
    await sleep(500);
  }
}

async function hashOfLedger(address: string, timeoutMs: number): Promise<string> {
  const url = ledgerUrl(`${address}:${ports.postgres}`, 'postgres');
  const rows = await ask<{ leaf: Buffer }>(
    url,
    'select tollbook.leaf(event) as leaf from tollbook.event order by seq',
    timeoutMs,
  );
  const hash = createHash('sha256');
  for (const { leaf } of rows) hash.update(leaf).update('\n');
  return `${rows.length} events, SHA-256 ${hash.digest('hex')}`;
}
