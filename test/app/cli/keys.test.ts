import { expect, test } from 'vitest';
import { isApiKey } from '../../../src/accounts/rules/api-key.ts';
import { listApiKeys } from '../../../src/accounts/store/api-keys.ts';
import { expectBooks } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { tollbook } from '../../support/program.ts';

test('an operator creates a key, grants credit to its account, expires some of it, and revokes the key', async () => {
  const database = await createDatabase();
  const run = (...args: string[]) => tollbook(args, { DATABASE_URL: database.url });
  const make = ['keys', 'create', '--account', 'alice', '--name', 'my bot', '--models', 'small,vendor/large'];
  const made = await run(...make, '--cap', '5.00', '--days', '30');
  expect(made).toMatchObject({
    code: 0,
    stderr: 'Key 1 of alice is shown only now; the database has its hash.\n',
  });
  const key = made.stdout.trimEnd();
  expect(isApiKey(key)).toBe(true);

  expect(await run('credit', 'grant', 'alice', '10.000001')).toMatchObject({
    code: 0,
    stdout: 'alice can spend 10.000001 now.\n',
  });
  expect(await run('credit', 'expire', 'alice', '4')).toMatchObject({
    code: 0,
    stdout: 'alice can spend 6.000001 now.\n',
  });
  const again = ['credit', 'expire', 'alice', '4', '--id', 'what-was-taken-once'];
  for (let times = 0; times < 2; times++)
    expect(await run(...again)).toMatchObject({ code: 0, stdout: 'alice can spend 2.000001 now.\n' });
  expect(await run('credit', 'grant', ...again.slice(2))).toMatchObject({
    code: 2,
    stderr: 'Nothing was done: that id was used for another request.\n',
  });
  expect(await run('credit', 'grant', 'alice', '4')).toMatchObject({ code: 0 });
  const tooMuch = await run('credit', 'expire', 'alice', '6.000002');
  expect(tooMuch).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('Nothing was expired'),
  });
  expect((await run('credit', 'list')).stdout).toMatch(/^alice +balance 6\.000001 +held 0 +used 0\n$/);

  const listed = await run('keys', 'list', '--account', 'alice');
  expect(listed.stdout).toMatch(
    /^ +1 +alice +my bot +spent 0 of 5 +never used +until .* for small,vendor\/large\n$/,
  );
  expect(listed.stdout).not.toContain(key);
  const [stored] = await listApiKeys(database.db);
  const days = ((stored?.expiresAt?.getTime() ?? 0) - (stored?.createdAt.getTime() ?? 0)) / 86_400_000;
  expect(days).toBeCloseTo(30, 2);

  expect(await run('keys', 'revoke', '1')).toMatchObject({ code: 0 });
  expect((await run('keys', 'list')).stdout).toContain('revoked ');
  const types = (await expectBooks(database)).map(({ type }) => type);
  expect(types).toEqual([
    'credit_account_opened',
    'key_created',
    'credit_granted',
    'credit_expired',
    'credit_expired',
    'credit_granted',
    'key_revoked',
  ]);
});

test('an unknown account or key is reported, and changes nothing', async () => {
  const database = await createDatabase();
  const run = (...args: string[]) => tollbook(args, { DATABASE_URL: database.url });
  const [granted, listed, revoked] = await Promise.all([
    run('credit', 'grant', 'nobody', '1'),
    run('keys', 'list', '--account', 'nobody'),
    run('keys', 'revoke', '7'),
  ]);
  expect(granted).toMatchObject({ code: 2, stderr: expect.stringContaining('no account nobody') });
  expect(listed).toMatchObject({ code: 2, stderr: 'There is no account nobody.\n' });
  expect(revoked).toMatchObject({ code: 2, stderr: 'There is no key 7.\n' });
  expect(await expectBooks(database)).toEqual([]);
});

test.each([
  [['keys', 'create'], '--account NAME'],
  [['keys', 'create', '--account', 'two words'], '--account NAME'],
  [['keys', 'create', '--account', 'a', '--name', 'two\nlines'], '--name'],
  [['keys', 'create', '--account', 'a', '--models', 'small,,large'], '--models'],
  [['keys', 'create', '--account', 'a', '--cap', '5,00'], '--cap'],
  [['keys', 'create', '--account', 'a', '--days', '0.5'], '--days'],
  [['keys', 'create', '--account', 'a', '--colour', 'red'], '--colour'],
  [['keys', 'revoke', 'first'], 'keys revoke ID'],
  [['credit', 'grant', 'alice'], 'credit grant ACCOUNT AMOUNT'],
  [['credit', 'grant', 'alice', '0.0000001'], 'six after it'],
  [['credit', 'grant', 'alice', '1', '--id', 'short'], '--id'],
  [['credit', 'expire', 'alice', '0.00'], 'above 0'],
])('the invalid arguments %j are refused with the reason, without a database', async (args, expected) => {
  const { code, stdout, stderr } = await tollbook(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(expected);
});
