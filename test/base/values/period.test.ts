import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { instantText, parseInstant, parsePeriod, shortInstant } from '../../../src/base/values/period.ts';

const nowMs = Date.parse('2026-12-05T10:00:00Z');
const read = (from?: string, to?: string) => parsePeriod(from, to, nowMs);
const spanOf = (from: string, to: string) => {
  const reading = read(from, to);
  return reading.kind === 'period'
    ? [instantText(reading.period.fromMs), instantText(reading.period.toMs)]
    : reading.refusal;
};

describe('a period', () => {
  test.each([
    ['2026-11', '2026-12', '2026-11-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z'],
    ['2026-11-03', '2026-11-04', '2026-11-03T00:00:00.000Z', '2026-11-04T00:00:00.000Z'],
    ['2024-02-29', '2024-03', '2024-02-29T00:00:00.000Z', '2024-03-01T00:00:00.000Z'],
    [
      '2026-11-01T01:00:00+01:00',
      '2026-11-01t12:30:00.5z',
      '2026-11-01T00:00:00.000Z',
      '2026-11-01T12:30:00.500Z',
    ],
    ['2026-12', '2026-12-05T10:00:00Z', '2026-12-01T00:00:00.000Z', '2026-12-05T10:00:00.000Z'],
  ])('from %s to %s is read in UTC', (from, to, fromText, toText) => {
    expect(spanOf(from, to)).toEqual([fromText, toText]);
  });

  test.each([
    [undefined, undefined, 'half_open', /--from is missing/],
    ['2026-11', undefined, 'half_open', /--to is missing/],
    [undefined, '2026-11', 'half_open', /--from is missing/],
    ['november', '2026-12', 'not_an_instant', /--from "november" is not a date/],
    ['2026-11', '2026-13', 'not_an_instant', /--to "2026-13"/],
    ['2026-02-30', '2026-03', 'not_an_instant', /2026-02-30/],
    ['2026-11-01T24:00:00Z', '2026-12', 'not_an_instant', /T24/],
    ['2026-11-01T08:00:00', '2026-12', 'not_an_instant', /T08/],
    ['2026-11-01 08:00:00Z', '2026-12', 'not_an_instant', /08/],
    ['2026-11-01T08:00:00.1234Z', '2026-12', 'not_an_instant', /1234/],
    ['', '2026-12', 'not_an_instant', /--from ""/],
    ['2026-12', '2026-11', 'reversed', /--from 2026-12-01 is after --to 2026-11-01/],
    ['2026-11', '2026-11', 'empty', /the month 2026-11 ends with --to 2026-12$/],
    ['2026-12-05', '2026-12-05', 'empty', /--to 2026-12-05 is not part of it$/],
    ['2027-01', '2027-02', 'in_the_future', /begins at 2027-01-01T00:00:00.000Z, now it is 2026-12-05/],
    ['2026-12', '2027-01', 'not_over', /ends at 2027-01-01.*choose a --to in the past/],
  ])('from %s to %s is refused as %s', (from, to, code, message) => {
    expect(read(from, to)).toMatchObject({
      kind: 'refusal',
      refusal: { code, message: expect.stringMatching(message) },
    });
  });

  test('every instant is read back from its own text', () => {
    const instants = fc.date({
      min: new Date('0001-01-01'),
      max: new Date('9999-12-31'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(instants, (date) => {
        expect(parseInstant(instantText(date.getTime()))).toBe(date.getTime());
        expect(parseInstant(shortInstant(date.getTime()))).toBe(date.getTime());
      }),
    );
  });
});
