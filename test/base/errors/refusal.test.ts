import { expect, test } from 'vitest';
import { defaultRetryAfterSecs, type RefusalCode, refusals } from '../../../src/base/errors/refusal.ts';

const entries = Object.entries(refusals) as [RefusalCode, (typeof refusals)[RefusalCode]][];

test('every refusal has an error status and whole sentences', () => {
  for (const [code, { status, sentence }] of entries) {
    expect({ code, isError: status >= 400 && status <= 503 }).toEqual({ code, isError: true });
    expect(sentence).toMatch(/^[A-Z].*\.$/);
  }
});

test('every refusal with status 503 has a default Retry-After, except sign_in_unavailable', () => {
  const withoutWait = entries
    .filter(([code, { status }]) => status === 503 && defaultRetryAfterSecs(code) === undefined)
    .map(([code]) => code);
  expect(withoutWait).toEqual(['sign_in_unavailable']);
});

test('a refusal says what its own request has charged, and never that a payment was not charged', () => {
  for (const [, { sentence }] of entries) expect(sentence).not.toMatch(/nothing was charged/i);
});

test('no refusal of a request that may have been paid says that it charged nothing', () => {
  for (const code of ['settlement_pending', 'internal_error', 'ledger_unavailable'] as const)
    expect(refusals[code].sentence).not.toMatch(/charged nothing/i);
});
