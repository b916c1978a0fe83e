import { expect, it } from 'vitest';
import { type Compared, hasReached, judgeReplica } from '../../../src/ledger/rules/replica-state.ts';

const nowMs = Date.parse('2026-12-01T12:00:00Z');
const primary = { systemIdentifier: '7', oid: 5, timeline: 3, lsn: 1_000, seq: 90, nowMs };
const even = {
  systemIdentifier: '7',
  oid: 5,
  timeline: 3,
  isStandby: true,
  lsn: 1_000,
  replayedMs: nowMs - 500,
  seq: 90,
  leafHash: 'aa',
};
const compare = (change: Partial<Compared['replica']>): Compared => ({
  primary,
  replica: { ...even, ...change },
});
const judged = (change: Partial<Compared['replica']>) => judgeReplica(compare(change), 'aa');

it('a replica that has everything is used, as of now', () => {
  expect(judged({})).toEqual({ kind: 'fit', seq: 90, asOfMs: nowMs, behindMs: 0 });
  const empty = compare({ seq: 0, leafHash: undefined });
  expect(judgeReplica(empty, undefined)).toMatchObject({ kind: 'fit', seq: 0 });
});

it('a replica 30 s behind is used for what may be older, as of its last commit; one a minute behind for nothing', () => {
  const asOfMs = nowMs - 30_000;
  expect(judged({ lsn: 900, seq: 80, replayedMs: asOfMs })).toEqual({
    kind: 'fit',
    seq: 80,
    asOfMs,
    behindMs: 30_000,
  });
  expect(judged({ lsn: 900, replayedMs: nowMs - 60_001 })).toMatchObject({ kind: 'unfit', fault: 'behind' });
});

it.each([
  ['behind', 'an hour behind', { lsn: 900, seq: 80, replayedMs: nowMs - 3_600_000 }],
  ['behind', 'that has replayed nothing since its start', { lsn: 900, replayedMs: undefined }],
  ['writable', 'that was promoted', { isStandby: false }],
  ['writable', 'that was never a standby', { isStandby: false, lsn: undefined }],
  ['other_timeline', 'on the timeline before a failover', { timeline: 2, lsn: 5_000 }],
  ['other_timeline', 'on a later timeline', { timeline: 4 }],
  ['other_ledger', 'of another cluster', { systemIdentifier: '8' }],
  ['other_ledger', 'of another database', { oid: 6 }],
  ['other_ledger', 'with another event in the same place', { leafHash: 'bb' }],
])('%s: a replica %s is not used', (fault, _what, change) => {
  const state = judged(change);
  expect(state).toMatchObject({ kind: 'unfit', fault });
  // the operator is told what to do
  expect(state.kind === 'unfit' && state.detail.length).toBeGreaterThan(20);
});

it('a replica with an event that the primary lacks is not used', () => {
  const ahead = compare({ seq: 91, lsn: 1_100 });
  expect(judgeReplica(ahead, undefined)).toMatchObject({ kind: 'unfit', fault: 'ahead' });
});

it('a place in the log is reached where the replica is there or further, and shows as many events', () => {
  expect(hasReached(compare({}))).toBe(true);
  expect(hasReached(compare({ lsn: 1_001, seq: 91 }))).toBe(true);
  expect(hasReached(compare({ lsn: 999 }))).toBe(false);
  expect(hasReached(compare({ seq: 89 }))).toBe(false);
  expect(hasReached(compare({ lsn: undefined }))).toBe(false);
});
