import { asRunner, leaseOne, paid, type Leased, type Paid } from '../../support/leases.ts';
import { expect, test } from 'vitest';
import { sha256 } from '../../../src/base/values/sha256.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { download, leased, starter } from '../../calls/use-cases/large-results-support.ts';

const start = starter(useChain());

function completeInline(gateway: TestGateway, { call_id, lease_id }: Leased, body: Buffer) {
  const result = { content_type: 'text/plain', body_base64: body.toString('base64') };
  return asRunner(gateway, `/runner/calls/${call_id}/complete`, { lease_id, result });
}

/** What the ledger has of the result, and what the receipt's owner gets. */
async function shown(database: TestDatabase, gateway: TestGateway, to: Paid) {
  const { events } = await database.asOwner(async (owner) => ({
    events: await expectSoundLedger(database.db, owner),
  }));
  const completed = events.findLast(({ type }) => type === 'completed');
  const { bytes } = await download(gateway, to);
  return { recorded: completed?.data, hash: sha256(bytes), length: bytes.length };
}

test('of completions of one lease that come together the first is kept, and it is the one that the ledger has', async () => {
  const database = await createDatabase();
  const gateway = await start(database, leased);
  for (let round = 0; round < 10; round++) {
    const to = await paid(gateway);
    const lease = await leaseOne(gateway);
    const bodies = ['the right result', 'another result', 'a third', 'x'.repeat(20_000)];
    const answers = await Promise.all(
      bodies.map((body) => completeInline(gateway, lease, Buffer.from(body))),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const receipt = (await gateway.get(to.path, to.bearer)).json;
    const { recorded, hash, length } = await shown(database, gateway, to);
    expect(recorded).toMatchObject({ result_sha256: hash, result_bytes: length });
    expect(sha256(Buffer.from(receipt.result.body_base64, 'base64'))).toBe(hash);
  }
});

test('a result that was stored before its gateway died is the one that is recorded when the same lease completes its call with another', async () => {
  const database = await createDatabase();
  const gateway = await start(database, leased);
  const to = await paid(gateway);
  const lease = await leaseOne(gateway);
  const first = Buffer.from('stored, and its gateway died');
  const row = [lease.call_id, 1, lease.lease_id, 'text/plain', first];
  await database.pool.query('select tollbook.put_result($1, $2, $3, $4, $5)', row);
  expect((await completeInline(gateway, lease, Buffer.from('run again'))).status).toBe(200);
  expect(await shown(database, gateway, to)).toMatchObject({
    recorded: { result_sha256: sha256(first), result_bytes: first.length },
    hash: sha256(first),
  });
});

test('a stored result that is not the recorded one is shown to no client, and the receipt says so', async () => {
  const database = await createDatabase();
  const gateway = await start(database, leased);
  const to = await paid(gateway);
  const lease = await leaseOne(gateway);
  await completeInline(gateway, lease, Buffer.from('recorded'));
  const alter = (body: string) =>
    database.asOwner((owner) =>
      owner.query('update tollbook.call_result set body = $1', [Buffer.from(body)]),
    );
  await alter('altered!');
  const { json } = await gateway.get(to.path, to.bearer);
  expect(json).toMatchObject({ state: 'completed', result: null, result_altered: true });
  expect((await download(gateway, to)).status).toBe(404);
  await alter('recorded');
  expect((await download(gateway, to)).bytes.toString()).toBe('recorded');
});
