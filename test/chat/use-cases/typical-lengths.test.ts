import { expect, test } from 'vitest';
import { createTypicalLengths, leastTokens } from '../../../src/chat/use-cases/typical-lengths.ts';

function after(answers: readonly number[]): number {
  const lengths = createTypicalLengths();
  for (const tokens of answers) lengths.note('m', tokens);
  return lengths.of('m');
}

test('a typical answer is twice what nineteen of twenty recent answers have at most', () => {
  const answers = [...Array<number>(244).fill(3_000), ...Array<number>(12).fill(90_000)];
  expect(after(answers)).toBe(6_000);
  expect(after([...answers, ...Array<number>(256).fill(5_000)])).toBe(10_000);
});

test('a typical answer is never short, and that of a model follows its own answers only', () => {
  expect(after([])).toBe(leastTokens);
  expect(after(Array<number>(500).fill(7))).toBe(leastTokens);
  const lengths = createTypicalLengths();
  lengths.note('one', 8_000);
  expect([lengths.of('one'), lengths.of('other')]).toEqual([16_000, leastTokens]);
});

test('answers that end at their limit make the next one longer until answers fit', () => {
  const lengths = createTypicalLengths();
  const limits: number[] = [];
  for (let at = 0; at < 100; at++) {
    limits.push(lengths.of('m'));
    lengths.note('m', Math.min(6_000, lengths.of('m')));
  }
  expect(limits.at(0)).toBe(1_024);
  expect(limits.at(-1)).toBe(12_000);
});
