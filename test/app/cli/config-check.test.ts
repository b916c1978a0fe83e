import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder, tollbook } from '../../support/program.ts';
import { runInProcess } from '../../support/run-in-process.ts';

const runnerToken = 'a-runner-token-of-enough-characters';

function fileOf(text: string): string {
  const file = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(file, text);
  return file;
}

const noKeys =
  'warning: config/dev.toml  receipt_key: is missing: receipt tokens are made with a key that is in the database, so a copy of ' +
  'the database opens every receipt\n' +
  'warning: config/dev.toml  quote_key: is missing: each quote is recorded before its answer, so every 402 waits for the disk\n';

test.each([
  ['config/dev.toml', noKeys, { TOLLBOOK_RUNNER_TOKEN: runnerToken }],
  ['config/example.toml', noKeys.replaceAll('dev.toml', 'example.toml'), { RUNNER_TOKEN: runnerToken }],
])('%s is valid', async (file, warnings, env) => {
  const { code, stdout, stderr } = await tollbook(['config', 'check', file], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: warnings });
  expect(stdout).toContain(`${file} is valid`);
});

test('without the secrets the rest of a file can be checked, and the keys that were not are named', async () => {
  const { code, stdout, stderr } = await tollbook(['config', 'check', 'config/example.toml', '--no-secrets']);
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('is valid') });
  expect(stderr).toMatch(/^not checked: runners\[0\]\.token$/m);
});

test('a gateway without DATABASE_URL reports that, and an invalid one is not printed', async () => {
  const serve = ['serve', '--config', 'config/dev.toml'];
  const env = { TOLLBOOK_RUNNER_TOKEN: runnerToken };
  expect(await tollbook(serve, env)).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('DATABASE_URL'),
  });
  const wrong = await tollbook(serve, { ...env, DATABASE_URL: 'mysql://user:hunter2@db/tollbook' });
  expect(wrong).toMatchObject({ code: 78, stderr: expect.stringContaining('DATABASE_URL') });
  expect(wrong.stdout + wrong.stderr).not.toContain('hunter2');
});

test('secrets may be in files, and a database URL that would be read wrongly is refused before a gateway starts', async () => {
  const env = {
    TOLLBOOK_RUNNER_TOKEN_FILE: fileOf(`${runnerToken}\n`),
    DATABASE_URL_FILE: fileOf('postgres://u:1#hush@db/x\n'),
  };
  const check = ['config', 'check', 'config/dev.toml'];
  const wrong = await tollbook(check, env);
  expect(wrong).toMatchObject({ code: 78, stderr: expect.stringContaining('write # as %23') });
  expect(wrong.stderr).not.toContain('hush');
  const sound = { ...env, DATABASE_URL_FILE: fileOf('postgres://u:1%23hush@db/x\n') };
  expect(await tollbook(check, sound)).toMatchObject({ code: 0 });
});

test.each([['a file that is not there'], ['a folder']])('%s cannot be checked', async (what) => {
  const folder = temporaryFolder();
  const file = what === 'a folder' ? folder : path.join(folder, 'gateway.toml');
  expect(await tollbook(['config', 'check', file])).toMatchObject({
    code: 78,
    stderr: expect.stringContaining(`${file}  cannot be read`),
  });
});

test('mistakes are reported with their lines, and nothing else is printed', async () => {
  const file = fileOf('bind_address = "127.0.0.1:8402"\nmarkup_bps = -1\nconfirm = "maybe"\n');
  const { code, stdout, stderr } = await tollbook(['config', 'check', file]);
  expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
  for (const place of ['2  markup_bps: ', '3  confirm: ']) expect(stderr).toContain(`${file}:${place}`);
});

test.each([
  [['explode']],
  [['config']],
  [['config', 'chekc', 'config/dev.toml']],
  [['config', 'check']],
  [['serve']],
  [['calls', 'requeue', 'first']],
  [['runners', 'resume']],
])('the arguments %j are no valid command, and the usage is shown', async (args) => {
  const { code, stdout, stderr } = await runInProcess(args, {});
  expect(code).toBe(2);
  expect(stderr).not.toBe('');
  expect(stdout + stderr).toMatch(/tollbook /);
});

test.each([[['--help']], [['-h']], [['help']], [[]]])('%j lists every command', async (args) => {
  const { code, stdout, stderr } = await tollbook(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const command of ['start', 'devnet', 'pay', 'serve', 'migrate', 'config check', 'calls dead'])
    expect(stdout).toContain(`  ${command} `);
});

test.each([[['serve', '--help']], [['config', 'check', '--help']], [['start', '--help']]])(
  '%j tells about one command and does nothing else',
  async (args) => {
    const { code, stdout, stderr } = await runInProcess(args, {});
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`tollbook ${args.slice(0, -1).join(' ')}: `);
    expect(stdout).not.toContain('listening');
  },
);
