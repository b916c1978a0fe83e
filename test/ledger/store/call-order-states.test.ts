import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { sha256 } from '../../../src/base/values/sha256.ts';
import { leaseCalls, putBody } from '../../../src/calls/store/calls.ts';
import type { CallChange } from '../../../src/ledger/store/lane-command.ts';
import { databaseWithLane } from '../../support/credit.ts';
import { type TestDatabase } from '../../support/database.ts';
import { newStream, paidWith, refused } from '../../support/events.ts';
import { propertyRuns } from '../../support/property-runs.ts';

/** Calls that wait although a place of their key is free, or that have a place and are not in delivery. */
async function wrongCalls({ pool }: TestDatabase): Promise<unknown[]> {
  const { rows } = await pool.query(`
    with head as (
      select distinct on (order_key) order_key, call_id, key_limit from tollbook.call where waits order by order_key, key_turn, call_id)
    select 'waits at a free place' as what, head.call_id::int from head
    where exists (select from generate_series(0, head.key_limit - 1) place
      where not exists (select from tollbook.call other where other.order_key = head.order_key and other.key_slot = place))
    union all
    select 'waits in state ' || status, call_id::int from tollbook.call where waits and status not in ('ready', 'pending')
    union all
    select 'has a place and waits', call_id::int from tollbook.call where waits and key_slot is not null
    union all
    select 'has a place in state ' || status, call_id::int from tollbook.call
    where key_slot is not null and (status = 'watched' or status = 'dead' and not keeps_key)
    union all
    select 'is delivered without a place', call_id::int from tollbook.call
    where status in ('ready', 'leased') and order_key is not null and key_slot is null and not waits`);
  return rows;
}

test.each([21, 22, 23])(
  'whatever becomes of the calls of a key, none waits while it has a place under its policy, and each gets its turn in the end (seed %i)',
  async (seed) => {
    const { database, lane } = await databaseWithLane();
    let state = seed;
    const random = (below: number): number => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((state / 2_147_483_648) * below);
    };
    const change = async (call: CallChange): Promise<string> =>
      (await lane.append({ stream: newStream(), events: [refused()], call }, { urgent: true })).outcome;
    const calls: number[] = [];
    const add = async (): Promise<void> => {
      const bodyId = randomUUID();
      await putBody(database.pool, bodyId, undefined, Buffer.from('body'));
      const order = {
        key: sha256(`key ${random(2)}`).slice(2),
        // the policy changes
        limit: 1 + random(3),
        keepsPlace: random(3) === 0,
        maxFailures: random(3) === 0 ? 2 : undefined,
      };
      const call = {
        op: 'add',
        serviceId: 1,
        jobIndex: 0,
        bodyId,
        payment: 'p',
        order,
        ...paidWith,
      } as const;
      const added = await lane.append({ stream: newStream(), events: [refused()], call });
      if (added.outcome === 'ok' && added.call_id !== null) calls.push(added.call_id);
    };
    const leases = new Map<number, string>();
    const lease = async (): Promise<void> => {
      for (const { callId, leaseId } of await leaseCalls(database.pool, [1], 1 + random(2), 60))
        leases.set(callId, leaseId);
    };
    const held =
      (op: 'complete' | 'check' | 'retry' | 'return_lease' | 'dead_letter') => async (): Promise<void> => {
        const [callId, leaseId] = [...leases][random(leases.size)] ?? [];
        if (callId === undefined || leaseId === undefined) return;
        if (op === 'retry' || op === 'return_lease') await change({ op, callId, leaseId, delayMs: 0 });
        else await change({ op, callId, leaseId });
        if (op !== 'check') leases.delete(callId);
      };
    const named =
      (op: 'release' | 'watch' | 'suspend' | 'mark_unpaid' | 'requeue' | 'discard' | 'remove') =>
      async (): Promise<void> => {
        await change({ op, callId: calls[random(calls.length)] ?? 0 });
      };
    let clock = 0;
    const expire = async (): Promise<void> => database.moveClock((clock += 61));
    const steps = [
      add,
      add,
      add,
      named('release'),
      named('release'),
      named('release'),
      named('release'),
      lease,
      lease,
      lease,
      held('complete'),
      held('check'),
      held('retry'),
      held('return_lease'),
      held('dead_letter'),
      named('watch'),
      named('suspend'),
      named('mark_unpaid'),
      named('requeue'),
      named('discard'),
      named('remove'),
      expire,
    ];
    for (let n = 0; n < propertyRuns(150).numRuns; n++) {
      const step = steps[random(steps.length)];
      if (calls.length < 4) await add();
      await step?.();
      expect(await wrongCalls(database), `after step ${n}`).toEqual([]);
    }
    // everything is paid, requeued and done
    for (const callId of calls) {
      await change({ op: 'release', callId });
      await change({ op: 'requeue', callId });
    }
    for (let round = 0; round < 500; round++) {
      await expire();
      const leased = await leaseCalls(database.pool, [1], 100, 60);
      if (leased.length === 0) break;
      for (const { callId, leaseId } of leased) await change({ op: 'complete', callId, leaseId });
    }
    const { rows } = await database.pool.query('select status, waits from tollbook.call');
    expect(rows).toEqual([]);
  },
);
