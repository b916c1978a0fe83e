import { createHash } from 'node:crypto';
import { migrate } from '../chaos/environment.ts';
import { ask } from '../chaos/sql.ts';
import { until } from '../chaos/until.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import type { Cluster } from './cluster.ts';
import { ports } from './page-files.ts';

/** The ledger's URL by way of an address. Roles and password are those of the page. */
export function ledgerUrl(hostAndPort: string, user = 'gateway', database = 'ledger'): string {
  return `postgresql://${user}:SECRET@${hostAndPort}/${database}`;
}

/** Creates the role, the database and its tables, as the page does. */
export async function createLedger(primary: string): Promise<void> {
  const admin = ledgerUrl(primary, 'postgres', 'postgres');
  await ask(admin, `create role gateway login createrole password 'SECRET'`);
  await ask(admin, 'create database ledger owner gateway');
  await migrate(repositoryRoot, ledgerUrl(primary));
}

/** How the nodes differ from each other once each has had time to replay what the primary has; empty where they do not. */
export async function differencesOfNodes(cluster: Cluster, timeoutMs: number): Promise<string[]> {
  let found: string[] = [];
  const isEqual = await until(
    timeoutMs,
    async () => {
      found = await Promise.all(cluster.nodes.map(({ address }) => hashOfLedger(address, timeoutMs)));
      return new Set(found).size === 1;
    },
    500,
  );
  return isEqual === undefined ? cluster.nodes.map(({ name }, index) => `${name} has ${found[index]}`) : [];
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
