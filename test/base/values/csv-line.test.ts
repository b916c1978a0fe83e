import { expect, test } from 'vitest';
import { csvField } from '../../../src/base/values/csv-line.ts';
import { soonMs } from '../../support/time-limits.ts';

const signs = ['=', '+', '-', '@', '＝', '＋', '－', '＠', '﹦', '﹢', '﹣', '﹫'];
const passedOver = [
  '',
  ' ',
  '\u00a0',
  '\u200b',
  '\u200c',
  '\u200d',
  '\u2060',
  '\ufeff',
  '\u00ad',
  '\u0000',
  '\u001f',
  '\u061c',
  '\u180e',
  '\u200e',
  '\u202e',
  '\u2066',
  '\u2800',
  '\u3000',
  '\u3164',
  '\ufe0f',
  '\u{e0020}',
];

test('no field is a formula to a spreadsheet, whatever a reader does not see before its sign', () => {
  for (const sign of signs)
    for (const before of [...passedOver, passedOver.join('')]) {
      const formula = `${before}${sign}1`;
      expect(csvField(formula)).toBe(`'${formula}`);
      expect(csvField(`x;${formula}`)).toBe(`x;'${formula}`);
      expect(csvField(`x\t${formula}`)).toBe(`x\t'${formula}`);
    }
});

test('a field begins with no tab and no end of a line, whatever is before it', () => {
  for (const before of passedOver)
    for (const blank of ['\t', '\r', '\n']) expect(csvField(`${before}${blank}x`)).toMatch(/^"?'/);
});

test('a text that is not a formula stays as it is', () => {
  for (const text of ['a-b', 'a = b', 'a@example.org', 'x; y', 'a\u200b-b', 'é', '2026-01-01', ' x'])
    expect(csvField(text)).toBe(text);
});

test('a long text without a sign takes linear time', () => {
  const startedMs = performance.now();
  csvField('\t'.repeat(200_000));
  expect(performance.now() - startedMs).toBeLessThan(soonMs(1_000));
});
