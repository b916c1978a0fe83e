import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jobKey, maxJobIndex, maxServiceId, parseJobId } from '../../../src/base/values/job.ts';

describe('a job id in a path', () => {
  test.each([
    ['0', '0', { serviceId: 0, jobIndex: 0 }],
    ['1', '0', { serviceId: 1, jobIndex: 0 }],
    ['9007199254740991', '4294967295', { serviceId: maxServiceId, jobIndex: maxJobIndex }],
  ])('%s/%s is accepted', (service, index, job) => {
    expect(parseJobId(service, index)).toEqual(job);
  });

  test.each([
    ['2^53', '9007199254740992'],
    ['2^53 + 1, which a float would round', '9007199254740993'],
    ['17 digits', '10000000000000000'],
    ['2^64', '18446744073709551616'],
    ['a thousand digits', '9'.repeat(1_000)],
    ['nothing', ''],
    ['a leading zero', '01'],
    ['two zeros', '00'],
    ['a minus sign', '-1'],
    ['minus zero', '-0'],
    ['a plus sign', '+1'],
    ['a space before', ' 1'],
    ['a space after', '1 '],
    ['a line break after', '1\n'],
    ['hex', '0x1'],
    ['an exponent', '1e0'],
    ['a fraction', '1.0'],
    ['a separator', '1_0'],
    ['Arabic-Indic digits', '١'],
    ['full-width digits', '１'],
    ['a superscript', '²'],
    ['letters', 'NaN'],
    ['a null character', '1\u0000'],
  ])('with %s is refused', (_, text) => {
    expect(parseJobId(text, '0')).toBeUndefined();
    expect(parseJobId('0', text)).toBeUndefined();
  });

  test('has an index of 32 bits', () => {
    expect(parseJobId('1', '4294967296')).toBeUndefined();
  });

  test('is parsed back from its key, and no other text names the same job', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.nat(maxJobIndex), (serviceId, jobIndex) => {
        const [service = '', index = ''] = jobKey({ serviceId, jobIndex }).split('/');
        expect(parseJobId(service, index)).toEqual({ serviceId, jobIndex });
      }),
    );
    fc.assert(
      fc.property(fc.string(), fc.string(), (service, index) => {
        const job = parseJobId(service, index);
        expect(job === undefined || jobKey(job) === `${service}/${index}`).toBe(true);
      }),
    );
  });
});
