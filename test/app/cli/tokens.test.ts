import { expect, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { tollbook } from '../../support/program.ts';

test('an operator token is created, listed without its secret, and revoked', async () => {
  const env = { DATABASE_URL: (await createDatabase()).url };
  const made = await tollbook(['tokens', 'create', 'auditor', '--scope', 'audit:read', '--days', '30'], env);
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^tollbook_[\w-]{43}\n$/) });
  const listed = await tollbook(['tokens', 'list'], env);
  expect(listed.stdout).toMatch(/^ +1 {2}auditor +audit:read {2}until /);
  expect(listed.stdout).not.toContain(made.stdout.trim());
  expect(await tollbook(['tokens', 'revoke', '1'], env)).toMatchObject({ code: 0 });
  expect(await tollbook(['tokens', 'revoke', '1'], env)).toMatchObject({ code: 2 });
  expect((await tollbook(['tokens', 'list'], env)).stdout).toContain('revoked');
});

test.each([
  ['no name', []],
  ['a name with spaces', ['two words', '--scope', 'audit:read']],
  ['no scope', ['name']],
  ['an unknown scope', ['name', '--scope', 'everything']],
  ['days that are no number', ['name', '--scope', 'audit:read', '--days', 'soon']],
])('a token with %s is a usage error', async (_, args) => {
  const env = { DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none' };
  expect(await tollbook(['tokens', 'create', ...args], env)).toMatchObject({ code: 2 });
});
