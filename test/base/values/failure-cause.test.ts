import { expect, test } from 'vitest';
import { failureCause, failureCausePattern } from '../../../src/base/values/failure-cause.ts';
import { lastWords } from '../../../src/base/values/last-words.ts';

/** As a runner says it, and as the call keeps it. */
const causeOf = (said: string, reason = 'attempts_exhausted') => failureCause(reason, lastWords(said, []));

test.each([
  ['numbers', 'status 500: row 17 of 25 at 12:30:59.250', 'status 500: row 9 of 1,000 at 0:01:00.5'],
  ['times', 'no answer since 2026-11-23T22:15:00Z', 'no answer since 2025-01-01T00:00:00.123+02:00'],
  ['UUIDs', 'no model 0d9e1f3c-98aa-4f11-8c0a-5d1f2e3a4b5c', 'no model 7a1b2c3d-0000-4111-8222-933344455566'],
  ['hashes', 'quote 0xab12cd is unknown', 'quote 0x00 is unknown'],
  ['ids in hexadecimal digits', 'trace 4bf92f3577b34da6 failed', 'trace 00f067aa0ba902b7 failed'],
  ['tokens', 'session sess_Ab3dEf6hIj9kLmNo is over', 'session sess_Zy8xWv7uTs6rQpOn is over'],
  ['addresses of people', 'no mailbox for ann@example.org', 'no mailbox for b.ob+x@mail.example.com'],
  ['addresses of hosts', 'connect ECONNREFUSED 10.0.0.7:5432', 'connect ECONNREFUSED 192.168.1.20:6432'],
  [
    'stacks',
    'TypeError: x is not a function\n    at run (/app/a.js:3:9)\n    at main (/app/b.js:1:1)',
    'TypeError: x is not a function\n    at other (/srv/new/c.js:33:1)',
  ],
  ['white space and control characters', 'no\u0000 model\r\n here', 'no model \u200b here'],
])('%s in the words of a runner do not make another cause', (_, one, other) => {
  expect(causeOf(one)).toEqual(causeOf(other));
});

test.each([
  ['words', causeOf('no model'), causeOf('no memory')],
  ['status', causeOf('status 500: no'), causeOf('status 503: no')],
  ['reason', causeOf('no', 'status_500'), causeOf('no', 'attempts_exhausted')],
])('another %s is another cause', (_, one, other) => {
  expect(one.key).not.toBe(other.key);
});

// operators keep these in scripts and tickets
test.each([
  ['status 500: {"error":"no model 17"}', 'attempts_exhausted-500-0b093d416ce8'],
  ['out of order', 'attempts_exhausted-2ee32f5ece03'],
  ['', 'attempts_exhausted-e3b0c44298fc'],
])('the key of a cause stays the same in every version: %s', (said, key) => {
  expect(causeOf(said).key).toBe(key);
});

test.each([
  ['a command', '$(rm -rf ~); `id` | sh & "quotes" \'quotes\' \\'],
  ['the control characters of a terminal', '\u001b[2J\u001b]0;title\u0007\u009b31m'],
  ['text that is read from right to left', '\u202eevil\u202c \u2066x\u2069'],
  ['half of a character', '\ud800 and \udc00'],
  ['a million characters', 'a1 '.repeat(333_333)],
  ['one long word', '@'.repeat(4_000)],
  ['digits alone', '1'.repeat(4_000)],
  ['dashes and digits', '-1'.repeat(2_000)],
])('a runner that says %s makes a key of plain letters and one short line', (_, said) => {
  const { key, words } = failureCause('status_500', lastWords(said, []));
  expect(key).toMatch(failureCausePattern);
  expect(key).toMatch(/^[a-z0-9_-]+$/);
  expect(words).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
  expect(Array.from(words).length).toBeLessThanOrEqual(160);
});

test('a call of which nothing is known has a cause as well', () => {
  expect(failureCause(null, null)).toEqual({
    key: expect.stringMatching(failureCausePattern) as string,
    words: '',
  });
  expect(failureCause('Not A Code; drop table', 'x').key).toMatch(/^unknown-/);
});

test.each([
  ['one letter', 'a'],
  ['dashes and letters', '-a'],
  ['dots', '.'],
  ['signs of numbers', '# ,'],
  ['frames of a stack', ' at x'],
])('words of nothing but %s are read in a time that grows as they do', (_, part) => {
  const of = (length: number) => part.repeat(length).slice(0, length);
  const startedAt = performance.now();
  for (let i = 0; i < 200; i++) failureCause('status_500', of(20_000));
  // 200 texts of 20,000 characters: what grows with the square of the length takes minutes
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});
