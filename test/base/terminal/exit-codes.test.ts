import { globSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ArgumentError } from '../../../src/base/terminal/arguments.ts';
import { commands } from '../../../src/app/cli/commands.ts';
import { type ExitCode, exitCodes } from '../../../src/base/terminal/exit-codes.ts';
import { temporaryFolder, tollbook } from '../../support/program.ts';

const month = ['--from', '2026-01', '--to', '2026-02'];
const unreachable = { DATABASE_URL: 'postgresql://ada:secret@127.0.0.1:1/books' };

async function codeOf(...args: string[]) {
  return (await tollbook(args, unreachable)).code;
}

/** Those that the help of a command lists. */
async function codesOf(...args: string[]) {
  const { stdout } = await tollbook([...args, '--help']);
  return [...stdout.matchAll(/^ {2}(\d+) +\S/gm)].map(([, code]) => Number(code));
}

test('the table has five codes, and a plain number is none of them', () => {
  expect(exitCodes).toEqual({ done: 0, finding: 1, notDone: 2, explained: 3, wrongConfiguration: 78 });
  // @ts-expect-error a command that returns a number does not compile
  const number: ExitCode = 0;
  expect(number).toBe(0);
});

test('docs/finance/README.md has a row for each code', () => {
  const [, section = ''] = readFileSync('docs/finance/README.md', 'utf8').split('\n## Exit codes\n');
  const rows = [...section.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(rows).toEqual(Object.values(exitCodes));
});

test('no file of the commands but the table has an exit code as a number, and one function reads the options of all', () => {
  const files = globSync(['src/*/{commands,terminal}/**/*.ts', 'src/app/cli/**/*.ts']);
  expect(files.length).toBeGreaterThan(70);
  const found = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) =>
        /process\.exit\((?!exitCodes\.)|\bexitCode = (?!await run|isHelp|exitCode)|as ExitCode|exit code:? \d|\bparseArgs\(/.test(
          line,
        ),
      )
      .map((line) => `${path.basename(file)}: ${line.trim()}`),
  );
  expect(found).toEqual(
    [
      'exit-codes.ts: const code = (number: number): ExitCode => number as ExitCode;',
      'arguments.ts: const { tokens } = parseArgs({ ...given, options: { ...options }, strict: false, tokens: true });',
    ].toSorted(),
  );
});

test('every command refuses an option that it does not have before it does anything', async () => {
  for (const [name, { load }] of Object.entries(commands)) {
    const run = await load();
    if (run.length === 0) continue;
    const error: unknown = await Promise.try(() => run(['--no-such-option'])).catch(
      (cause: unknown) => cause,
    );
    const isRefusal =
      error instanceof ArgumentError || /ERR_PARSE_ARGS/.test((error as { code?: string }).code ?? '');
    expect({ name, error: isRefusal ? 'refused' : error }).toEqual({ name, error: 'refused' });
  }
});

test.each([
  ['an unknown command', ['refunds', 'list'], /^tollbook has no command refunds list; there is: refunds due/],
  [
    'an unknown option',
    ['reconcile', '--form', '2026-01'],
    /^Unknown option '--form'.*`tollbook reconcile --help` lists its options\n$/,
  ],
  ['an option without its value', ['aging', '--as-of'], /^Option '--as-of <value>' argument missing/],
  [
    'an option given twice',
    ['export', '--format', 'csv', ...month, '--tz', 'UTC', '--tz', 'Europe/Berlin'],
    /^--tz is given twice: give it once\n$/,
  ],
  [
    'the end of a period given twice',
    ['reconcile', ...month, '--to', '2026-03'],
    /^--to is given twice: give it once\n$/,
  ],
  [
    'a node given twice for one network',
    ['reconcile', ...month, '--rpc', 'eip155:1=http://127.0.0.1:1', '--rpc', 'eip155:1=http://127.0.0.1:2'],
    /^--rpc is given twice for eip155:1: give it once for each network\n$/,
  ],
  ['an answer given twice', ['period', 'show', '2026-01', '--json', '--json'], /^--json is given twice/],
  [
    'an empty period',
    ['export', '--format', 'csv', '--from', '2026-01', '--to', '2026-01'],
    /^the period is empty/,
  ],
  ['a reversed period', ['reconcile', '--from', '2026-02', '--to', '2026-01'], /^the period is reversed/],
  [
    'a period in the future',
    ['reconcile', '--from', '2026-01', '--to', '2999-01', '--rpc', 'eip155:1=http://127.0.0.1:1'],
    /^the period is not over/,
  ],
  [
    'a list from a time in the future',
    ['sweeps', 'list', '--from', '2999-01'],
    /^--from is in the future: now it is /,
  ],
  ['no address of a database', ['refunds', 'due'], /DATABASE_URL/],
])('%s ends with 2, and standard error says why', async (_case, args, words) => {
  expect(await tollbook(args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(words) });
});

test('a database that cannot be reached ends every command of finance with 2 and one line, without its password', async () => {
  const ends = await Promise.all(
    [
      ['verify'],
      ['refunds', 'due'],
      ['export'],
      ['aging'],
      ['period', 'list'],
      ['reconcile', ...month, '--rpc', 'eip155:1=http://127.0.0.1:1'],
    ].map(async (args) => {
      const { code, stdout, stderr } = await tollbook(args, unreachable);
      return {
        args,
        code,
        stdout,
        isOneLine: /^(?![^\n]*secret)[^\n]*ECONNREFUSED[^\n]*check the URL[^\n]*\n$/.test(stderr),
      };
    }),
  );
  expect(ends).toEqual(ends.map(({ args }) => ({ args, code: 2, stdout: '', isOneLine: true })));
});

test('mistakes in the configuration end the commands that serve with 78, which systemd does not start again, and every other with 2', async () => {
  const file = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(file, 'bind_adress = "127.0.0.1:8402"\n');
  expect(
    await Promise.all([
      codeOf('serve', '--config', file),
      codeOf('pricing', '--config', file),
      codeOf('config', 'check', file),
      codeOf('reconcile', ...month, '--config', file),
      codeOf('recover', '--config', file, '--by', 'ada'),
      codeOf('serve', '--config', file, '--config', file),
    ]),
  ).toEqual([78, 78, 78, 2, 2, 2]);
  expect(readFileSync('deploy/systemd/tollbook.service', 'utf8')).toContain(
    '\nRestartPreventExitStatus=78\n',
  );
});

test('the help of a command lists its own exit codes, with what they mean for it', async () => {
  expect(await codesOf('reconcile')).toEqual([0, 1, 2, 3]);
  expect(await codesOf('verify')).toEqual([0, 1, 2]);
  expect(await codesOf('keys', 'list')).toEqual([0, 2]);
  expect(await codesOf('serve')).toEqual([0, 2, 78]);
  expect(await codesOf()).toEqual([0, 1, 2, 3, 78]);
});
