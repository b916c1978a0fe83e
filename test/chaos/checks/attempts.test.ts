import { expect, test } from 'vitest';
import type { LedgerEvent, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { eventExamples } from '../../ledger/rules/examples.ts';
import { attemptViolations } from './attempts.ts';

const of = (type: LedgerEvent['type']): LedgerEvent => ({ type, data: eventExamples[type] }) as LedgerEvent;
const recovered = of('ledger_recovered');
const settled = of('payment_settled');
const disproved = of('settlement_disproved');
const enqueued = of('enqueued');
const delivered = (attempt: number): LedgerEvent => ({ type: 'delivered', data: { call_id: 1, attempt } });
const retried = (attempt: number): LedgerEvent => ({
  type: 'delivery_failed',
  data: { call_id: 1, attempt, reason: 'http_503' },
});
const completed = (attempt: number): LedgerEvent => ({ type: 'completed', data: { call_id: 1, attempt } });

function violationsOf(...events: LedgerEvent[]): string[] {
  const recorded = events.map((event, index): RecordedEvent => {
    const stream = event.type === 'ledger_recovered' ? 'recovery:2' : `0x${'3'.repeat(64)}`;
    return { ...event, stream, version: index + 1, seq: index + 1, at: '' };
  });
  return [...attemptViolations(recorded)].map(({ words }) => words);
}

const paid = [settled, enqueued];

test.each([
  ['paid and done', [...paid, delivered(1), completed(1)]],
  ['delivered twice', [...paid, delivered(1), delivered(2), completed(2)]],
  ['taken back too late', [...paid, delivered(1), disproved, settled, completed(1)]],
  ['taken back during an attempt', [...paid, delivered(1), disproved, retried(1), settled, delivered(2)]],
  ['completed by a runner whose delivery a restore lost', [...paid, recovered, completed(1)]],
  ['failed, delivered again and lost', [...paid, delivered(1), retried(1), recovered, completed(2)]],
])('%s is legal', (_, events) => {
  expect(violationsOf(...events)).toEqual([]);
});

test.each([
  ['completed by an older attempt', [...paid, delivered(2), completed(1)], 'attempt 1 completed'],
  ['completed without a delivery', [...paid, completed(1)], 'attempt 1 completed'],
  [
    'completed without a delivery after a recovery before it was paid',
    [recovered, ...paid, completed(1)],
    'attempt 1 completed',
  ],
  ['completed by an attempt that no restore explains', [...paid, recovered, completed(2)], 'attempt 2 compl'],
  ['delivered twice as one attempt', [...paid, delivered(1), delivered(1)], 'attempt 1 after attempt 1'],
  [
    'delivered again after it was taken back',
    [...paid, delivered(1), disproved, retried(1), delivered(2)],
    'attempt 2 although the payment was taken back',
  ],
])('%s is not', (_, events, fault) => {
  expect(violationsOf(...events).join()).toContain(fault);
});
