import { expect, test } from 'vitest';
import type { EventData, LedgerEvent } from '../../../src/ledger/rules/event.ts';
import { sha256 } from '../../../src/base/values/sha256.ts';
import { firingKey } from '../../../src/base/values/triggers/trigger.ts';
import { triggeredStream } from '../../../src/base/values/triggers/trigger.ts';
import { firstProblem } from '../../support/first-problem.ts';
import { eventExamples } from '../../ledger/rules/examples.ts';

const { log: _, ...example } = eventExamples.call_triggered;
const key = firingKey(
  example.ledger_id,
  { kind: 'webhook', name: 'orders', id: 'msg_2' },
  example.body_sha256,
);
const stream = triggeredStream(key);
const triggered = (change: Partial<EventData<'call_triggered'>> = {}): LedgerEvent => ({
  type: 'call_triggered',
  data: { ...example, idempotency_key: key, ...change },
});
const attempt = { call_id: example.call_id, attempt: 1 };
const delivered: LedgerEvent = { type: 'delivered', data: attempt };
const completed: LedgerEvent = { type: 'completed', data: attempt };
const dead: LedgerEvent = { type: 'dead_lettered', data: { ...attempt, reason: 'http_403' } };
const requeued: LedgerEvent = { type: 'operator_requeued', data: { call_id: example.call_id } };
const givenUp: LedgerEvent = {
  type: 'operator_discarded',
  data: { call_id: example.call_id, why: 'the model is gone', operator: 'ops' },
};

interface Written {
  readonly event: LedgerEvent;
  readonly at: string;
}

/** The first problem that the verifier finds. */
function problemIn(events: readonly (LedgerEvent | Written)[]): string | undefined {
  const leaves: Buffer[] = [];
  const versions = new Map<string, number>();
  for (const [index, given] of events.entries()) {
    const { event, at: name } = 'event' in given ? given : { event: given, at: stream };
    const version = (versions.get(name) ?? 0) + 1;
    versions.set(name, version);
    const at = '2027-01-15T08:00:00.000Z';
    const { type, data } = event;
    const sorted = Object.fromEntries(Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    const leaf = { at, data: sorted, lane: 1, schema: 1, seq: index + 1, stream: name, type, version };
    leaves.push(Buffer.from(JSON.stringify(leaf)));
  }
  return firstProblem(leaves)?.words;
}

const otherKey = firingKey(
  example.ledger_id,
  { kind: 'webhook', name: 'orders', id: 'msg_3' },
  example.body_sha256,
);
const other = triggered({ trigger_id: 'msg_3', idempotency_key: otherKey, call_id: 9 });
const movedKey = firingKey(
  'f'.repeat(32),
  { kind: 'webhook', name: 'orders', id: 'msg_2' },
  example.body_sha256,
);
const moved = triggered({ ledger_id: 'f'.repeat(32), idempotency_key: movedKey, call_id: 9 });

test.each<[string, readonly (LedgerEvent | Written)[]]>([
  ['completed', [triggered(), delivered, completed]],
  ['dead, requeued and completed', [triggered(), delivered, dead, requeued, delivered, completed]],
  ['of two firings', [triggered(), { event: other, at: triggeredStream(otherKey) }, delivered]],
])('a call of a trigger that is %s passes the verifier', (_name, events) => {
  expect(problemIn(events)).toBeUndefined();
});

test.each<[string, readonly (LedgerEvent | Written)[], RegExp]>([
  ['made twice in its stream', [triggered(), triggered()], /must be the first event/],
  [
    'made twice for one firing',
    [triggered(), { event: moved, at: triggeredStream(movedKey) }],
    /claimed before/,
  ],
  ['in the stream of another', [{ event: triggered(), at: triggeredStream(otherKey) }], /not named by/],
  [
    'with the key of another body',
    [triggered({ body_sha256: sha256('another') })],
    /not that of its trigger/,
  ],
  ['with its own key', [triggered({ idempotency_key: otherKey })], /not that of its trigger/],
  [
    'delivered as another call',
    [triggered(), { ...delivered, data: { call_id: 3, attempt: 1 } }],
    /another call/,
  ],
  ['requeued after it was given up', [triggered(), dead, givenUp, requeued], /the call was given up/],
  ['requeued while it is not a dead letter', [triggered(), requeued], /the call is enqueued/],
  [
    'delivered after it was completed',
    [triggered(), delivered, completed, delivered],
    /the call is completed/,
  ],
  [
    'enqueued by a payment',
    [triggered(), { type: 'enqueued', data: eventExamples.enqueued }],
    /does not belong/,
  ],
  [
    'refunded',
    [triggered(), delivered, dead, { type: 'refunded', data: eventExamples.refunded }],
    /does not belong/,
  ],
  ['delivered and never made', [delivered], /belongs to a quote/],
])('a call of a trigger that is %s is found by the verifier', (_name, events, words) => {
  expect(problemIn(events)).toMatch(words);
});
