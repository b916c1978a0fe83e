import { expect, onTestFinished, test } from 'vitest';
import type { EventDescriptor, FollowUpTopic } from '../../../src/ledger/rules/descriptor.ts';
import { eventDescriptors, eventTypes, type LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { collectFollowUps } from '../../../src/payments/store/follow-ups.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { collectPayouts } from '../../../src/chat/store/payouts.ts';
import { collectTopUpReversals } from '../../../src/accounts/store/top-ups.ts';
import { eventExamples } from '../../ledger/rules/examples.ts';
import { createDatabase } from '../../support/database.ts';
import { randomHex32 } from '../../support/events.ts';

const reorged = { ...eventExamples.settlement_reorged, call: 'kept' } as const;
/** The event before it that a follow-up depends on. */
const before: { readonly [type: string]: LedgerEvent } = {
  settlement_failed: { type: 'settlement_reorged', data: reorged },
  spend_earned: { type: 'spend_accepted', data: eventExamples.spend_accepted },
};
const data = {
  ...eventExamples,
  settlement_reorged: reorged,
  settlement_disproved: { ...eventExamples.settlement_disproved, call: 'kept' },
};

test('the follow-ups that SQL collects for each event type are those of its descriptor', async () => {
  const { url, pool } = await createDatabase();
  const lane = openLane({ url, role: writerRole });
  onTestFinished(() => lane.close(1_000));
  const typeBySeq = new Map<number, string>();
  const typeByStream = new Map<string, string>();
  for (const type of eventTypes) {
    const stream = randomHex32();
    const events = [...(before[type] ? [before[type]] : []), { type, data: data[type] } as LedgerEvent];
    const appended = await lane.append({ stream, expect: 0, events });
    if (appended.outcome !== 'ok') throw new Error(`${type} was not appended: ${appended.outcome}`);
    typeBySeq.set(appended.seq ?? 0, type);
    typeByStream.set(stream, type);
  }
  for (const collect of [collectFollowUps, collectTopUpReversals, collectPayouts]) await collect(pool, 1_000);

  const { rows } = await pool.query<{ seq: number; topic: FollowUpTopic }>(
    'select seq::int as seq, topic from tollbook.follow_up',
  );
  const { rows: payouts } = await pool.query<{ stream: string }>('select stream from tollbook.payout');
  const collected = [
    ...rows.map(({ seq, topic }) => `${typeBySeq.get(seq)}: ${topic}`),
    ...payouts.map(({ stream }) => `${typeByStream.get(stream)}: pay_out`),
  ].filter((line) => !line.startsWith('undefined'));
  const described = eventTypes.flatMap((type) => {
    const { followUps }: EventDescriptor = eventDescriptors[type];
    return followUps === 'none' ? [] : followUps.map((topic) => `${type}: ${topic}`);
  });
  expect(collected.toSorted()).toEqual(described.toSorted());
});
