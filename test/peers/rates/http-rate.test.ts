import { expect, test } from 'vitest';
import { rateText } from '../../../src/domain/values/rate.ts';
import { askHttpRate } from '../../../src/peers/rates/http-rate.ts';
import { startRateSource } from '../../support/rate-source.ts';

const now = 1_700_000_000;

test('an HTTP source gives exactly the digits that it has, or a problem, never a wrong rate', async () => {
  const source = await startRateSource('');
  let timeoutMs = 10_000;
  const ask = async (body: string) => {
    source.body = body;
    const of = {
      kind: 'http',
      url: source.url,
      pointer: '/a/0',
      timePointer: undefined,
      inverse: false,
    } as const;
    const answer = await askHttpRate(of, now, timeoutMs);
    return answer.kind === 'rate' ? rateText(answer.rate) : answer.problem;
  };
  expect(await ask('{"a":[3200.123456789012345678901234567890123]}')).toBe(
    '3200.123456789012345678901234567890123',
  );
  expect(await ask('{"a":["12345678901234567890.5"]}')).toBe('12345678901234567890.5');
  expect(await ask('{"a":[0.00]}')).toBe('not_positive');
  expect(await ask('{"a":[-1]}')).toBe('not_positive');
  for (const wrong of ['{"a":[3.2e3]}', '{"a":["NaN"]}', '{"a":{}}', '<html>', '', '{"a":[true]}'])
    expect(await ask(wrong)).toBe('malformed');
  expect(await ask(`{"a":[1],"b":"${'x'.repeat(300_000)}"}`)).toBe('too_large');
  [source.delayMs, timeoutMs] = [20_000, 100];
  expect(await ask('{"a":[1]}')).toBe('unreachable');
  [source.delayMs, source.status, timeoutMs] = [0, 500, 10_000];
  expect(await ask('{"a":[1]}')).toBe('unreachable');
});
