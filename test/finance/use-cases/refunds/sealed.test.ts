import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { isAsSealed } from '../../../../src/audit/use-cases/log/changed-events.ts';
import { projectToHead } from '../../../../src/audit/use-cases/projections/project.ts';
import { listRefundsDue } from '../../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { planBatch } from '../../../../src/finance/use-cases/refunds/make-batch.ts';
import { startRefund } from '../../../../src/finance/use-cases/refunds/send-refund.ts';
import { useChain } from '../../../support/devnet.ts';
import { beginGeneration, sealAll } from '../../../support/log.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { tamper } from '../../../support/verify.ts';
import type { TestDatabase } from '../../../support/database.ts';
import { chainsAt, giveBack, network, payerAddress, refunding } from './support.ts';

const chain = useChain();
const rpcOf = () => ['--rpc', `${network}=${chain.rpcUrl}`];
const thief = `0x${'66'.repeat(20)}`;

const notAsSealed = expect.stringMatching(
  /^The events are not all those that the log has sealed: .* Pay nothing before `tollbook verify` is sound\.\n$/,
) as string;

async function nonceOf({ pool }: TestDatabase, digest: Hex): Promise<Hex> {
  const { rows } = await pool.query<{ nonce: Hex }>(
    `select data::json->'payment'->>'nonce' as nonce from tollbook.event
      where type = 'settlement_started' and stream = tollbook.stream_key($1)`,
    [digest],
  );
  return rows[0]!.nonce;
}

/** Names a thief as the payer in the events of a payment and in its row, as an insider with the database would. */
async function dueToThief() {
  const { database, ledger, paid } = await refunding(chain);
  const [honest, stolen] = [await paid(), await paid()];
  await projectToHead(ledger);
  await sealAll(database);
  await tamper(database, {
    what: 'the payer of a refund that is due',
    words: /./,
    change: async (owner) => {
      await owner.query(
        `update tollbook.event set data = replace(data, $1, $2) where stream = tollbook.stream_key($3)`,
        [payerAddress, thief, stolen],
      );
      await owner.query(
        `update tollbook.payment set payer = decode($1, 'hex') where seq in
          (select seq from tollbook.event where stream = tollbook.stream_key($2))`,
        [thief.slice(2), stolen],
      );
    },
  });
  const { rows: edited } = await database.pool.query<{ seq: number }>(
    `select seq from tollbook.event where stream = tollbook.stream_key($1) and position($2 in data) > 0 order by seq`,
    [stolen, thief],
  );
  return { database, ledger, honest, stolen, edited: edited.map(({ seq }) => seq) };
}

test('a refund whose events are not those that were sealed is listed nowhere, no batch and no wallet pays it, and the commands end with 1', async () => {
  const { database, ledger, honest, stolen, edited } = await dueToThief();
  const env = { DATABASE_URL: database.url };
  expect(edited.length).toBeGreaterThan(1);
  const { rows, changed, contradicted } = await listRefundsDue(ledger.pool, 0, 10);
  expect(rows.map(({ quote_digest }) => quote_digest)).toEqual([honest]);
  expect([changed, contradicted]).toEqual([edited, []]);

  const listed = await tollbook(['refunds', 'due'], env);
  expect(listed).toMatchObject({ code: 1, stdout: '', stderr: notAsSealed });

  expect(await planBatch(ledger.pool, { network, max: 10 }, chainsAt(chain.rpcUrl))).toEqual({
    kind: 'changed',
    seqs: edited,
  });
  const out = path.join(temporaryFolder(), 'batch.json');
  const batch = await tollbook(['refunds', 'batch', '--network', network, '--out', out, ...rpcOf()], env);
  expect([batch.code, batch.stdout, existsSync(out)]).toEqual([1, '', false]);

  const of = { quoteDigest: stolen, paymentNonce: await nonceOf(database, stolen), operator: 'ada' };
  expect(await startRefund(ledger, of, chainsAt(chain.rpcUrl))).toMatchObject({
    kind: 'refused',
    code: 'changed',
  });
});

test('a ledger whose tree was edited with the events lists no refund of theirs', async () => {
  const { database, ledger, honest, edited } = await dueToThief();
  await tamper(database, {
    what: 'the hashes of the edited events',
    words: /./,
    change: async (owner) => {
      for (const seq of edited)
        await owner.query(
          String.raw`update tollbook.log_tile set hashes = overlay(hashes placing
            (select sha256('\x00'::bytea || tollbook.leaf(event)) from tollbook.event where seq = $1) from ($1::int - 1) * 32 + 1)
            where level = 0 and tile = 0`,
          [seq],
        );
    },
  });
  const { rows, changed } = await listRefundsDue(ledger.pool, 0, 10);
  expect(rows).toEqual([]);
  expect(changed.length).toBeGreaterThan(edited.length);
  expect(honest).not.toBe('');
});

test.each([
  ['a tile was removed', 'delete from tollbook.log_tile where level = 0'],
  ['a tile was cut', 'update tollbook.log_tile set hashes = substr(hashes, 1, 33) where level = 0'],
  ['the newest head has another text', `update tollbook.log_head set note = 'no checkpoint'`],
  ['the newest head has another size', `update tollbook.log_head set note = replace(note, E'\n', E'\n9')`],
])('no refund is listed where %s', async (_what, change) => {
  const { database, ledger, paid } = await refunding(chain);
  await paid();
  await projectToHead(ledger);
  await sealAll(database);
  await tamper(database, { what: 'the log', words: /./, change: (owner) => owner.query(change) });
  const { rows, changed } = await listRefundsDue(ledger.pool, 0, 10);
  expect(rows).toEqual([]);
  expect(changed.length).toBeGreaterThan(0);
  expect(await tollbook(['refunds', 'due'], { DATABASE_URL: database.url })).toMatchObject({
    code: 1,
    stdout: '',
  });
});

test('after a recovery the events are compared with the heads of the new generation, and what was recorded is listed', async () => {
  const { database, ledger, paid } = await refunding(chain);
  const digests = [await paid()];
  await sealAll(database);
  const { rows } = await database.pool.query<{ last: number }>('select max(seq) as last from tollbook.event');
  await beginGeneration(database, 2, rows[0]!.last);
  // no head of the new generation yet
  expect(await isAsSealed(ledger.pool)).toBe(true);
  digests.push(await paid());
  await sealAll(database);
  await projectToHead(ledger);
  expect(await isAsSealed(ledger.pool)).toBe(true);
  const listed = await tollbook(['refunds', 'due'], { DATABASE_URL: database.url });
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  for (const digest of digests) expect(listed.stdout).toContain(digest.slice(0, 10));
  await tamper(database, {
    what: 'an event of the first generation',
    words: /./,
    change: (owner) =>
      owner.query(
        `update tollbook.event set data = replace(data, $1, $2) where stream = tollbook.stream_key($3)`,
        [payerAddress, thief, digests[0]],
      ),
  });
  expect(await isAsSealed(ledger.pool)).toBe(false);
});

test('with --require-sealed nothing is listed before a checkpoint covers it', async () => {
  const { database } = await dueToThief();
  const { code, stdout, stderr } = await tollbook(['refunds', 'due', '--require-sealed'], {
    DATABASE_URL: database.url,
  });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('are not as they were sealed');
});

/** The event of a recorded refund, and the row of its payment, as an insider who wants it twice would leave them. */
const forgetRefund = `update tollbook.payment set state = 'dead_lettered', refunded_at = null, refund_transaction = null, refunded_amount = 0,
    refund_due = 'dead_lettered', refund_due_since = (select ended_at from tollbook.paid_call where paid_call.call_id = payment.call_id
      and paid_call.generation = payment.generation)
  where refunded_at is not null`;

test.each([
  ['removed', `delete from tollbook.event where type = 'refunded'`],
  [
    'moved to another stream',
    `update tollbook.event set stream = tollbook.stream_key('elsewhere'), version = 1 where type = 'refunded'`,
  ],
  [
    'removed, with the heads of the log that cover it',
    `with gone as (delete from tollbook.event where type = 'refunded' returning seq)
      delete from tollbook.log_head where size >= (select seq from gone)`,
  ],
  [
    'removed, and the newest head has the text of an older one',
    `with gone as (delete from tollbook.event where type = 'refunded' returning seq)
      update tollbook.log_head set note = (select note from tollbook.log_head where size < (select seq from gone) order by size desc limit 1)
        where size >= (select seq from gone)`,
  ],
])('a payment is not refunded twice because the event of its refund was %s', async (_how, change) => {
  const { database, ledger, paid, record, final } = await refunding(chain);
  const digest = await paid();
  await sealAll(database);
  const refund = await final(await giveBack(chain));
  expect(await record(digest, refund)).toMatchObject({ kind: 'recorded' });
  await projectToHead(ledger);
  await sealAll(database);
  const env = { DATABASE_URL: database.url };
  expect(await tollbook(['refunds', 'due'], env)).toMatchObject({ code: 0, stdout: 'No refund is due.\n' });

  await tamper(database, {
    what: 'a recorded refund',
    words: /./,
    change: async (owner) => {
      await owner.query(change);
      await owner.query(forgetRefund);
    },
  });
  expect(await tollbook(['refunds', 'due'], env)).toMatchObject({ code: 1, stdout: '', stderr: notAsSealed });
  const out = path.join(temporaryFolder(), 'batch.json');
  const batch = await tollbook(['refunds', 'batch', '--network', network, '--out', out, ...rpcOf()], env);
  expect(batch).toMatchObject({ code: 1, stdout: '', stderr: notAsSealed });
  expect(existsSync(out)).toBe(false);
  const of = { quoteDigest: digest, paymentNonce: await nonceOf(database, digest), operator: 'ada' };
  expect(await startRefund(ledger, of, chainsAt(chain.rpcUrl))).toMatchObject({
    kind: 'refused',
    code: 'changed',
  });
});

test.each([
  ['removed', 'delete from tollbook.payment where refund_due is not null'],
  ['emptied', 'update tollbook.payment set refund_due = null, refund_due_since = null'],
  ['given another state', `update tollbook.payment set state = 'completed', refund_due = null`],
])('a refund that is due is named where its row was %s, and no batch leaves it out', async (_how, change) => {
  const { database, ledger, paid } = await refunding(chain);
  await paid();
  await projectToHead(ledger);
  await sealAll(database);
  const { rows } = await database.pool.query<{ seq: number }>(
    'select seq from tollbook.payment where refund_due is not null',
  );
  const env = { DATABASE_URL: database.url };
  expect(await tollbook(['refunds', 'due'], env)).toMatchObject({ code: 0 });

  await tamper(database, {
    what: 'the row of a refund that is due',
    words: /./,
    change: (owner) => owner.query(change),
  });
  const words = expect.stringContaining(
    `The read models say something else about the payments that events ${rows[0]!.seq} started`,
  ) as string;
  expect(await tollbook(['refunds', 'due'], env)).toMatchObject({ code: 1, stdout: '', stderr: words });
  const out = path.join(temporaryFolder(), 'batch.json');
  const batch = await tollbook(['refunds', 'batch', '--network', network, '--out', out, ...rpcOf()], env);
  expect(batch).toMatchObject({ code: 1, stdout: '', stderr: words });
});

test('no batch, and no wallet of the console, pays back a payment that the chain does not show, whatever the sealed events say', async () => {
  const { database, ledger, paid, owed } = await refunding(chain);
  const [invented, { callId: _, ...honest }] = [await paid(), await owed()];
  await projectToHead(ledger);
  const env = { DATABASE_URL: database.url };
  const out = path.join(temporaryFolder(), 'batch.json');
  const batch = (...more: string[]) =>
    tollbook(['refunds', 'batch', '--network', network, '--out', out, ...more], env);
  // before it is sealed, as somebody would append a payment that was never made
  await tamper(database, {
    what: 'the transaction of a payment',
    words: /./,
    change: async (owner) => {
      await owner.query(
        `update tollbook.event set data = regexp_replace(data, '"transaction":"0x[0-9a-f]{64}"', '"transaction":"0x' || repeat('66', 32) || '"')
          where stream = tollbook.stream_key($1)`,
        [invented],
      );
      await owner.query(
        `update tollbook.payment set transaction = decode(repeat('66', 32), 'hex') where seq in
          (select seq from tollbook.event where stream = tollbook.stream_key($1))`,
        [invented],
      );
    },
  });
  await sealAll(database);
  expect(await batch()).toMatchObject({ code: 2, stderr: expect.stringContaining('--rpc') });
  const { code, stderr } = await batch(...rpcOf());
  expect(code).toBe(1);
  expect(stderr).toContain(`does not show the payment of quote ${invented}:`);
  expect(existsSync(out)).toBe(false);
  expect(await batch('--rpc', `${network}=http://127.0.0.1:1`)).toMatchObject({ code: 2 });
  const of = { quoteDigest: invented, paymentNonce: await nonceOf(database, invented), operator: 'ada' };
  expect(await startRefund(ledger, of, chainsAt(chain.rpcUrl))).toMatchObject({ code: 'not_shown' });
  expect(await startRefund(ledger, of, chainsAt('http://127.0.0.1:1'))).toMatchObject({
    code: 'chain_unavailable',
  });
  expect(await startRefund(ledger, honest, chainsAt(chain.rpcUrl))).toMatchObject({ kind: 'started' });
});
