import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { Hex } from '../../src/domain/values/primitives.ts';
import { projectToHead } from '../../src/projections/project.ts';
import { listRefundsDue } from '../../src/refunds/list-refunds-due.ts';
import { makeBatch } from '../../src/refunds/make-batch.ts';
import { startRefund } from '../../src/refunds/send-refund.ts';
import { useChain } from '../support/devnet.ts';
import { sealAll } from '../support/log.ts';
import { temporaryFolder, tollbook } from '../support/program.ts';
import { tamper } from '../support/verify.ts';
import { network, payerAddress, refunding } from './support.ts';

const chain = useChain();
const thief = `0x${'66'.repeat(20)}`;

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
  expect([listed.code, listed.stdout.includes(thief), listed.stdout.includes(honest)]).toEqual([
    1,
    false,
    true,
  ]);
  expect(listed.stderr).toMatch(
    new RegExp(
      `^The events ${edited.join(', ')} are not those that the log has sealed.*Pay nothing before \`tollbook verify\` is sound`,
    ),
  );

  expect(await makeBatch(ledger.pool, { network, max: 10 })).toEqual({ kind: 'changed', seqs: edited });
  const out = path.join(temporaryFolder(), 'batch.json');
  const batch = await tollbook(['refunds', 'batch', '--network', network, '--out', out], env);
  expect([batch.code, batch.stdout, existsSync(out)]).toEqual([1, '', false]);

  const { rows: payments } = await database.pool.query<{ nonce: Hex }>(
    `select data::json->'payment'->>'nonce' as nonce from tollbook.event
      where type = 'settlement_started' and stream = tollbook.stream_key($1)`,
    [stolen],
  );
  const of = { quoteDigest: stolen, paymentNonce: payments[0]!.nonce, operator: 'ada' };
  expect(await startRefund(ledger, of)).toMatchObject({ kind: 'refused', code: 'changed' });
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

test('with --require-sealed nothing is listed before a checkpoint covers it', async () => {
  const { database } = await dueToThief();
  const { code, stdout, stderr } = await tollbook(['refunds', 'due', '--require-sealed'], {
    DATABASE_URL: database.url,
  });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('are not as they were sealed');
});
