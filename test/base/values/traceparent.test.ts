import { expect, test } from 'vitest';
import { formatTraceparent, parseTraceparent } from '../../../src/base/values/traceparent.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

test('a traceparent is read as it was written', () => {
  for (const isSampled of [true, false])
    expect(parseTraceparent(formatTraceparent({ traceId, spanId, isSampled }))).toEqual({
      traceId,
      spanId,
      isSampled,
    });
  expect(parseTraceparent(`00-${traceId}-${spanId}-03`)).toMatchObject({ isSampled: true });
});

test.each([
  undefined,
  '',
  `00-${traceId}-${spanId}`,
  `ff-${traceId}-${spanId}-01`,
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `00-${traceId}-${spanId}-01-more`,
  [`00-${traceId}-${spanId}-01`],
])('%j is not a traceparent', (value) => {
  expect(parseTraceparent(value)).toBeUndefined();
});
