import { describe, expect, test } from 'vitest';
import { EntityCheck } from '../../../../src/audit/rules/entity-check.ts';
import { type PeriodEvent, Periods, periodStream } from '../../../../src/finance/rules/periods/periods.ts';
import type { Period } from '../../../../src/base/values/period.ts';
import { eventExamples } from '../../../ledger/rules/examples.ts';

const month = (number: number): Period => ({
  fromMs: Date.UTC(2026, number - 1),
  toMs: Date.UTC(2026, number),
});
const [september, october, november] = [month(9), month(10), month(11)];

function event(type: PeriodEvent['type'], { fromMs, toMs }: Period, change: object = {}): PeriodEvent {
  const data = { ...eventExamples[type], from_ms: fromMs, to_ms: toMs, time_zone: 'UTC', ...change };
  if (type !== 'operator_period_closed') delete (data as { time_zone?: string }).time_zone;
  return {
    type,
    data,
    seq: 1,
    version: 1,
    stream: periodStream,
    at: '2026-12-01T00:00:00.000Z',
  } as PeriodEvent;
}
const close = (period: Period, operator = 'ada') => event('operator_period_closed', period, { operator });
const review = (period: Period, operator = 'bob') => event('operator_period_reviewed', period, { operator });
const reopen = (period: Period) => event('operator_period_reopened', period);

/** What the verifier says of the events, which has its own rules. */
function faultIn(events: readonly PeriodEvent[]): string | undefined {
  const check = new EntityCheck();
  return events.map((one) => check.apply(one, periodStream)).find((words) => words !== undefined);
}

describe('a period is', () => {
  test('closed, reviewed and opened again, and the verifier says that this is legal', () => {
    const events = [
      close(october),
      review(october),
      close(november),
      reopen(november),
      close(november, 'bob'),
    ];
    const periods = new Periods(events);
    expect(
      periods.standing.map(({ close: { data }, review: by }) => [data.operator, by?.data.operator]),
    ).toEqual([
      ['ada', 'bob'],
      ['bob', undefined],
    ]);
    expect(periods.all).toHaveLength(3);
    expect(faultIn(events)).toBe(undefined);
  });

  test('closed with other ends once all that followed was opened again', () => {
    const wider = { fromMs: october.fromMs, toMs: november.toMs };
    const events = [close(october), reopen(october)];
    expect(new Periods(events).refuseClose(wider)).toBe(undefined);
    expect(faultIn([...events, close(wider)])).toBe(undefined);
  });
});

describe('nobody', () => {
  test.each([
    ['closes a period twice', [close(october)], close(october), 'closed_before'],
    ['leaves a gap between two periods', [close(september)], close(november), 'gap'],
    ['closes a period before the first one', [close(october)], close(september), 'overlap'],
    [
      'closes a part of a closed period',
      [close(october)],
      close({ fromMs: october.fromMs, toMs: october.toMs - 1 }),
      'overlap',
    ],
  ] as const)('%s', (_, before, next, code) => {
    const { from_ms: fromMs, to_ms: toMs } = next.data;
    expect(new Periods(before).refuseClose({ fromMs, toMs })).toMatchObject({ code });
    expect(faultIn([...before, next])).toMatch(/does not begin where the last closed period ends/);
  });

  test.each([
    ['reviews what is not closed', [], 'bob', 'not_closed'],
    ['reviews what was opened again', [close(october), reopen(october)], 'bob', 'not_closed'],
    ['reviews what they have closed', [close(october)], 'ada', 'same_person'],
    ['reviews what they have closed under another spelling', [close(october)], 'ADA', 'same_person'],
    ['reviews a period twice', [close(october), review(october)], 'carl', 'reviewed_before'],
  ] as const)('%s', (_, before, operator, code) => {
    expect(new Periods(before).refuseReview(october, operator)).toMatchObject({ code });
    expect(faultIn([...before, review(october, operator)])).not.toBe(undefined);
  });

  test.each([
    ['opens what is not closed', [close(september)], 'not_closed'],
    ['opens a period before the last one', [close(october), close(november)], 'later_closed'],
  ] as const)('%s', (_, before, code) => {
    expect(new Periods(before).refuseReopening(october)).toMatchObject({ code });
    expect(faultIn([...before, reopen(october)])).not.toBe(undefined);
  });

  test('reviews another report than that of the close', () => {
    const other = event('operator_period_reviewed', october, {
      operator: 'bob',
      report_sha256: `0x${'9'.repeat(64)}`,
    });
    expect(faultIn([close(october), other])).toMatch(/another report/);
  });
});
