import { randomBytes } from 'node:crypto';
import { expect, inject, onTestFinished, test } from 'vitest';
import { operatorScopes } from '../../src/base/values/operator-scope.ts';
import { openPool } from '../../src/ledger/store/database.ts';
import { openLane } from '../../src/ledger/store/lane.ts';
import { migrate, pendingMigrations } from '../../src/ledger/store/migrations.ts';
import { grantedWriterRole } from '../../src/ledger/store/writer-role.ts';
import { checkRows } from '../../src/audit/use-cases/verify/rows/check-rows.ts';
import { newStream, refused } from '../support/events.ts';
import { type Page, readPage } from '../support/pages.ts';
import { withClient } from '../support/database.ts';

const page = readPage('docs/operations/roles.md');
const sqlOf = ({ blocks }: Page): string[] =>
  blocks.filter(({ language }) => language === 'sql').map(({ text }) => text);
const [forServer = '', forDatabase = ''] = sqlOf(page);
const [forSecondGateway = ''] = sqlOf(readPage('docs/operations/rotate-secrets.md'));

/** Runs the statements of a block, with names of this test's own in place of the page's. */
async function runBlock(url: string, block: string, name: string): Promise<void> {
  const text = block
    .replaceAll(/\bledger\b|\b(ledger_owner|gateway|gateway_2|reader)\b/g, (found) =>
      found === 'ledger' ? name : `${name}_${found}`,
    )
    .replaceAll(/tollbook_(writer|reader)_ledger/g, `tollbook_$1_${name}`);
  await withClient(url, async (client) => {
    // a database cannot be created within a transaction, which several statements of one message are
    for (const statement of text.split(/;\n/)) if (statement !== '') await client.query(statement);
  });
}

test('with the roles of the page the owner migrates, the gateway appends and changes no event, and the reader reads no secret', async () => {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const server = inject('serverUrl').replace('DATABASE', 'postgres');
  const urlOf = (role: string) =>
    inject('serverUrl')
      .replace('DATABASE', name)
      .replace(/\/\/([^/@]*@)?/, `//${name}_${role}:SECRET@`);
  onTestFinished(() =>
    withClient(server, async (admin) => {
      await admin.query(`drop database if exists ${name} with (force)`);
      for (const role of ['ledger_owner', 'gateway', 'gateway_2', 'reader'])
        await admin.query(`drop role if exists ${name}_${role}`);
      for (const role of ['writer', 'reader'])
        await admin.query(`drop role if exists tollbook_${role}_${name}`);
    }),
  );
  await runBlock(server, forServer, name);
  expect(await migrate(urlOf('ledger_owner'))).toMatchObject({ notice: undefined });

  const url = urlOf('gateway');
  expect(await pendingMigrations(url)).toEqual([]);
  const role = await grantedWriterRole(url);
  expect(role).toBe(`tollbook_writer_${name}`);
  const lane = openLane({ url, role });
  expect(await lane.append({ stream: newStream(), events: [refused()] })).toMatchObject({ outcome: 'ok' });
  await lane.close();
  const pool = openPool({ url, role, maxConnections: 1 });
  onTestFinished(() => pool.end());
  await expect(pool.query('delete from tollbook.event')).rejects.toThrow(/permission denied/);
  // not as the writer role either: this user owns nothing
  await expect(withClient(url, (client) => client.query('delete from tollbook.event'))).rejects.toThrow(
    /permission denied/,
  );

  // another password is another role, which needs nothing of the first
  await runBlock(server, forSecondGateway, name);
  await withClient(server, (admin) => admin.query(`drop role ${name}_gateway`));
  const second = openLane({ url: urlOf('gateway_2'), role });
  expect(await second.append({ stream: newStream(), events: [refused()] })).toMatchObject({ outcome: 'ok' });
  await second.close();

  await runBlock(inject('serverUrl').replace('DATABASE', name), forDatabase, name);
  await withClient(urlOf('reader'), async (reader) => {
    expect((await reader.query('select count(*)::int as n from tollbook.event')).rows).toEqual([{ n: 2 }]);
    const { rows: leaves } = await reader.query(
      'select tollbook.leaf_text(event) from tollbook.event where stream = tollbook.stream_key(tollbook.stream_name(stream))',
    );
    expect(leaves).toHaveLength(2);
    expect((await reader.query('select type, requests from audit.refusal')).rows).toHaveLength(2);
    for (const column of [
      'from tollbook.secret',
      'from tollbook.call_body',
      'hash from tollbook.api_key',
      'hash from tollbook.operator_token',
      'from identity.session',
      'email from identity."user"',
    ])
      await expect(reader.query(`select ${column}`)).rejects.toThrow(/permission denied/);
    // of a later table too; the view names what its reader may read
    const { rows: secrets } = await reader.query(
      "select table_name from information_schema.columns where table_schema = 'tollbook' and column_name like '%secret%'",
    );
    expect(secrets).toEqual([]);
    await expect(reader.query('select tollbook.halt_ledger(null, null, null)')).rejects.toThrow(
      /permission denied/,
    );
    expect((await reader.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '30s' }]);
  });
  // it may compare the rows with their events as well
  const readerPool = openPool({ url: urlOf('reader'), maxConnections: 1 });
  expect(await checkRows(readerPool)).toEqual([]);
  await readerPool.end();
});

test('the page has every scope of operator tokens', () => {
  const named = [...page.text.matchAll(/`([a-z]+:(?:read|write))`/g)].map(([, scope = '']) => scope);
  expect(named.toSorted()).toEqual([...operatorScopes].toSorted());
});
