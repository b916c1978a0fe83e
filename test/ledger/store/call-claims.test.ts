import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { AnyClaim, CallChange } from '../../../src/ledger/store/append-batch.ts';
import { readerRole, writerRole } from '../../../src/ledger/store/database.ts';
import { type Lane, openLane } from '../../../src/ledger/store/lane.ts';
import { createDatabase } from '../../support/database.ts';
import { newStream, randomHex32, refused, replayDenied } from '../../support/events.ts';
import { expectSoundLedger } from '../../support/invariants.ts';

function claimsOf(key: string, binding: string): AnyClaim[] {
  const of = { owner: '', scope: '', key, binding };
  return [
    { kind: 'payment', ...of },
    { kind: 'caller_nonce', caller: '0xca11', serviceId: 1, jobIndex: 0, nonceSha256: key },
    { kind: 'payment_id', ...of },
  ];
}

/** A payment's call with all that a payment can claim. */
async function startedCall() {
  const database = await createDatabase();
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close(1_000));
  const [stream, key] = [newStream(), randomHex32()];
  const call: CallChange = {
    op: 'add',
    serviceId: 1,
    jobIndex: 0,
    bodyId: randomUUID(),
    network: 'eip155:84532',
    asset: '0xa5',
    symbol: 'USDC',
    caller: undefined,
    payment: key,
    idempotencyKey: 'a',
    delayMs: 0,
  };
  const added = await lane.append({ stream, events: [refused()], claims: claimsOf(key, 'first'), call });
  if (added.outcome !== 'ok' || added.call_id === null) throw new Error('the call was not added');
  const callId = added.call_id;
  const move = (op: 'watch' | 'remove' | 'release') =>
    lane.append({ stream, events: [refused()], call: { op, callId } });
  return { database, lane, stream, key, move };
}

/** The claims that another payment can take now. */
async function freeKinds(lane: Lane, key: string): Promise<string[]> {
  const free: string[] = [];
  for (const claim of claimsOf(key, 'second')) {
    const { outcome } = await lane.append({ stream: newStream(), events: [refused()], claims: [claim] });
    if (outcome === 'ok') free.push(claim.kind);
  }
  return free;
}

test('a payment that failed and may still land frees nothing that it claimed', async () => {
  const { lane, key, move } = await startedCall();
  expect((await move('watch')).outcome).toBe('ok');
  expect(await freeKinds(lane, key)).toEqual([]);
});

test('a payment that can never land frees all that it claimed except its own nonce, also after it was watched', async () => {
  const { lane, key, move } = await startedCall();
  await move('watch');
  await move('remove');
  expect(await freeKinds(lane, key)).toEqual(['caller_nonce', 'payment_id']);
});

test('a payment that lands after it failed keeps what it claimed', async () => {
  const { lane, key, move } = await startedCall();
  await move('watch');
  expect((await move('release')).outcome).toBe('ok');
  expect(await freeKinds(lane, key)).toEqual([]);
});

test("a caller's used nonce is a separate row, which an auditor reads in SQL and whose unique index refuses a second one of its caller and job", async () => {
  const { database, stream, key, move } = await startedCall();
  const nonces = () => database.db.selectFrom('tollbook.caller_nonce').selectAll().execute();
  const used = { caller: '0xca11', service_id: 1, job_index: 0, nonce_sha256: key, stream };
  expect(await nonces()).toEqual([{ ...used, used_at: expect.anything() }]);
  await database.asOwner(async (owner) => {
    const insert = (job: number) =>
      owner.query(
        `insert into tollbook.caller_nonce select caller, service_id, $1, nonce_sha256, 'another', used_at
          from tollbook.caller_nonce`,
        [job],
      );
    await expect(insert(0)).rejects.toMatchObject({ code: '23505' });
    await insert(1);
    await owner.query(`set role ${readerRole}`);
    const { rows } = await owner.query('select stream from tollbook.caller_nonce order by job_index');
    expect(rows).toEqual([{ stream }, { stream: 'another' }]);
  });
  await move('remove');
  expect((await nonces()).map(({ stream: of }) => of)).toEqual(['another']);
});

test('two commands of one batch that claim one nonce of a caller leave it to the first: the other is refused in the next batch, on record, and no other of its batch with it', async () => {
  const database = await createDatabase();
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close(1_000));
  const nonce = { kind: 'caller_nonce', caller: '0xca11', serviceId: 1, jobIndex: 0 } as const;
  const of = (nonceSha256: string, lost = newStream()) => ({
    stream: newStream(),
    events: [refused()],
    claims: [{ ...nonce, nonceSha256 }],
    lost: { stream: lost, events: { caller_nonce: [replayDenied()] } },
  });
  const [first, meets, other] = [of('one'), of('one'), of('two')];
  // the first append keeps the connection busy, so that the others come in one batch
  const busy = lane.append({ stream: newStream(), events: [refused()] });
  const outcomes = await Promise.all([busy, ...[first, meets, other].map((command) => lane.append(command))]);
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'lost', 'ok']);
  expect(outcomes[2]).toMatchObject({ claim: 'caller_nonce', stream: first.stream });
  const recorded = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(recorded.filter(({ stream }) => stream === meets.stream)).toEqual([]);
  expect(recorded.filter(({ stream }) => stream === meets.lost.stream)).toHaveLength(1);
});
