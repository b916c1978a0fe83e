import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { CallChange, Claim } from '../../../src/ledger/store/append-batch.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { type Lane, openLane } from '../../../src/ledger/store/lane.ts';
import { createDatabase } from '../../support/database.ts';
import { newStream, randomHex32, refused } from '../../support/events.ts';

const kinds = ['payment', 'caller_nonce', 'payment_id'] as const;

function claimsOf(key: string, binding: string): Claim[] {
  return kinds.map((kind) => ({ kind, owner: '', scope: '', key, binding }));
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
  return { lane, key, move };
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
