import { expect, test } from 'vitest';
import { withinCpuMs } from '../../../src/base/runtime/within-cpu.ts';
import { cpuMs, maxPieceMs } from '../../support/main-thread.ts';

test('work gives its result, undefined too, and its own error', () => {
  expect(withinCpuMs(25, () => 7)).toEqual({ kind: 'done', value: 7 });
  expect(withinCpuMs(25, () => undefined)).toEqual({ kind: 'done', value: undefined });
  expect(() => withinCpuMs(25, () => JSON.parse('{'))).toThrow(SyntaxError);
});

const slow = (): boolean => /^(a+)+$/.test(`${'a'.repeat(40)}!`);

test('a pattern that would take hours is broken off', () => {
  expect(withinCpuMs(25, slow)).toEqual({ kind: 'too_long' });
  expect(cpuMs(() => withinCpuMs(25, slow))).toBeLessThan(maxPieceMs);
});
