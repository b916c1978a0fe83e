import { describe, expect, test } from 'vitest';
import { instantText, parseNamedPeriod, parsePeriod, periodName } from '../../../src/base/values/period.ts';
import { findTimeZone, utc } from '../../../src/base/values/time-zone.ts';

const nowMs = Date.parse('2027-01-05T10:00:00Z');

function zone(name: string) {
  const found = findTimeZone(name);
  if (!found) throw new Error(`no zone ${name}`);
  return found;
}

const spanOf = (text: string, name: string) => {
  const reading = parseNamedPeriod(text, nowMs, zone(name));
  return reading.kind === 'period'
    ? [instantText(reading.period.fromMs), instantText(reading.period.toMs)]
    : reading.refusal.message;
};

describe('a month in a time zone', () => {
  test.each([
    ['2026-10', 'UTC', '2026-10-01T00:00:00.000Z', '2026-11-01T00:00:00.000Z'],
    // the clocks go back within the month
    ['2026-10', 'Europe/Berlin', '2026-09-30T22:00:00.000Z', '2026-10-31T23:00:00.000Z'],
    ['2026-03', 'America/New_York', '2026-03-01T05:00:00.000Z', '2026-04-01T04:00:00.000Z'],
    ['2026-12', 'Asia/Kathmandu', '2026-11-30T18:15:00.000Z', '2026-12-31T18:15:00.000Z'],
    ['2026-01', 'Pacific/Kiritimati', '2025-12-31T10:00:00.000Z', '2026-01-31T10:00:00.000Z'],
  ])('%s in %s begins and ends at midnight there', (month, name, from, to) => {
    expect(spanOf(month, name)).toEqual([from, to]);
  });

  test('has its name back, and days in the zone name other periods', () => {
    const name = (text: string, where = zone('Europe/Berlin')) => {
      const reading = parseNamedPeriod(text, nowMs, where);
      return reading.kind === 'period' ? periodName(reading.period) : reading.refusal.code;
    };
    expect(name('2026-10')).toBe('2026-10');
    expect(name('2026-10-01/2026-11-01')).toBe('2026-10');
    expect(name('2026-10-02/2026-11')).toBe('2026-10-02/2026-11-01');
    expect(name('2026-10-01T00:00:00Z/2026-11-01', zone('Europe/Berlin'))).toBe(
      '2026-10-01T00:00:00.000Z/2026-11-01',
    );
    for (const text of ['october', '2026', '2026-13', '2026-10/2026-11/2026-12', ''])
      expect(name(text)).toBe('not_a_period');
    expect(name('2027-01')).toBe('not_over');
  });
});

test('a day begins at its first instant, also if its midnight does not exist or comes twice', () => {
  // 2026-03-29 in Beirut begins at one o'clock; 2026-10-25 in Beirut has its midnight twice
  const beirut = zone('Asia/Beirut');
  for (const day of ['2026-03-29', '2026-10-25', '2026-10-24', '2026-10-26']) {
    const startMs = beirut.startOf(day);
    expect([beirut.dayOf(startMs), beirut.dayOf(startMs - 1) < day]).toEqual([day, true]);
  }
  expect(utc.startOf('2026-03-29')).toBe(Date.parse('2026-03-29T00:00:00Z'));
});

test('a zone is a name of the IANA database, not an offset or another text', () => {
  for (const name of ['+01:00', 'Europe/Nowhere', '', 'Europe/Berlin\n', '../etc', 'a'.repeat(80)])
    expect(findTimeZone(name)).toBe(undefined);
  expect(findTimeZone('UTC')).toBe(utc);
});

test('the hint for an empty period names the end of the month in its zone', () => {
  const reading = parsePeriod('2026-10', '2026-10', nowMs, zone('Europe/Berlin'));
  expect(reading).toMatchObject({ refusal: { message: expect.stringMatching(/--to 2026-11$/) } });
});

test('a time in a zone is the same instant, with the offset of its day', () => {
  for (const name of ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata'])
    for (const ms of [Date.parse('2026-01-15T12:00:01Z'), Date.parse('2026-07-15T23:30:59Z')])
      expect(Date.parse(zone(name).textOf(ms))).toBe(ms);
  expect(zone('America/New_York').textOf(Date.parse('2026-01-15T02:00:00Z'))).toBe(
    '2026-01-14T21:00:00-05:00',
  );
});
