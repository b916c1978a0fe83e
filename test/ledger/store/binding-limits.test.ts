import { expect, test } from 'vitest';
import { clockAt } from '../../support/append-ways.ts';
import { admission, laneOn } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';

test('the limit that leaves the least is the one that an answer names, of minutes and of days, decided or not', async () => {
  const database = await createDatabase();
  await database.asOwner((owner) => owner.query(clockAt('2026-11-30T12:00:00Z')));
  const lane = laneOn(database);
  const own = { subject: 'ip:192.0.2.1', perMinute: 9, perDay: 5 };
  const others = [
    { subject: 'account:1', perMinute: 4, perDay: undefined },
    { subject: 'free:ip:192.0.2.1', perMinute: 6, perDay: 3 },
  ];
  const left: number[][] = [];
  // the windows of the first are created: it is decided, those after it are not
  for (let tried = 0; tried < 4; tried++) {
    const { detail } = await lane.appendCredit(admission({ ...own, others }));
    const { remaining, per_minute, reset_ms, remaining_today, per_day } = detail;
    left.push([remaining, per_minute, reset_ms, remaining_today, per_day].map(Number));
  }
  expect(left).toEqual([
    [3, 4, 60_000, 2, 3],
    [2, 4, 60_000, 1, 3],
    [1, 4, 60_000, 0, 3],
    [1, 4, 60_000, 0, 3],
  ]);
});
