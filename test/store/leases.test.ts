import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { leaseCalls, putBody } from '../../src/store/calls.ts';
import { laneOn } from '../support/credit.ts';
import { createDatabase } from '../support/database.ts';
import { newStream, refused } from '../support/events.ts';

test('a lease of many calls stops once their bodies have 16 MiB, so that paid bodies do not exhaust memory', async () => {
  const database = await createDatabase();
  const lane = laneOn(database);
  for (let count = 0; count < 3; count++) {
    const bodyId = randomUUID();
    await putBody(database.pool, bodyId, undefined, Buffer.alloc(9 * 2 ** 20));
    const stream = newStream();
    const add = { op: 'add', serviceId: 1, jobIndex: 0, bodyId } as const;
    const pay = { network: 'eip155:1', symbol: 'USDC', caller: undefined, payment: 'p', delayMs: 0 };
    const added = await lane.append({ stream, events: [refused()], call: { ...add, ...pay } });
    const callId = added.outcome === 'ok' ? (added.call_id ?? 0) : 0;
    await lane.append({ stream, events: [refused()], call: { op: 'release', callId } });
  }
  const lease = async () => (await leaseCalls(database.pool, [1], 100, 60)).length;
  expect([await lease(), await lease(), await lease()]).toEqual([2, 1, 0]);
});
