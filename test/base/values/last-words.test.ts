import { expect, test } from 'vitest';
import { lastWords } from '../../../src/base/values/last-words.ts';

test("a runner's words are one line without control characters, of at most 500 characters", () => {
  expect(lastWords('no\u001B[31m luck\r\n\tat line 3\u2028', [])).toBe('no [31m luck at line 3');
  expect(lastWords('x'.repeat(1_000_000), [])).toHaveLength(500);
});

test("a runner's words never end with half of a surrogate pair, which the ledger cannot take", () => {
  expect(lastWords(`${'x'.repeat(499)}😀`, [])).toBe('x'.repeat(499));
  expect(lastWords(`${'x'.repeat(498)}😀`, [])).toBe(`${'x'.repeat(498)}😀`);
});

test.each([
  ['the secret is s3cret-of-the-runner.', 'the secret is [hidden].'],
  ['Authorization: Bearer abc.def-123', 'Authorization: Bearer [hidden]'],
  ['cannot reach postgres://user:pa55@db/x', 'cannot reach postgres://[hidden]@db/x'],
  ['{"api_key":"sk-123","n":1}', '{"api_key":"[hidden]","n":1}'],
  ['DB_PASSWORD=hunter2 rest', 'DB_PASSWORD=[hidden] rest'],
])("a runner's words hide credentials: %s", (said, shown) => {
  expect(lastWords(said, ['s3cret-of-the-runner'])).toBe(shown);
});
