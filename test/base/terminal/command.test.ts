import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { commands } from '../../../src/app/cli/commands.ts';
import { readOptions } from '../../../src/base/terminal/arguments.ts';
import { commandsPage, helpOf, text, texts, textOr, flag } from '../../../src/base/terminal/command.ts';
import { tollbook } from '../../support/program.ts';

const described = {
  summary: 'tries things',
  forms: ['NAME --to PLACE'],
  options: {
    to: text('PLACE', 'where'),
    size: textOr('N', '5', 'how many'),
    from: texts('PLACE', 'whence;\nin any order'),
    dry: flag('changes nothing'),
  },
} as const;

test('the help of a command has every option with its value, its default and what it is, one below the other', () => {
  expect(helpOf('try', described).split('\n').slice(0, 9)).toEqual([
    'tollbook try: tries things',
    '',
    'tollbook try NAME --to PLACE [OPTIONS]',
    '  --to PLACE      where',
    '  --size N        how many; default: 5',
    '  --from PLACE …  whence;',
    '                  in any order',
    '  --dry           changes nothing',
    '  needs DATABASE_URL',
  ]);
});

test('the page of all commands has of each its forms, options, defaults, notes and own exit codes', () => {
  const exits = { finding: 'found something' };
  const page = commandsPage({ try: { ...described, notes: ['is harmless'], isReading: true, exits } });
  expect(page.slice(page.indexOf('## ')).split('\n')).toEqual([
    '## `try`',
    '`tollbook try NAME --to PLACE [OPTIONS]` tries things (*reader*)',
    '- `--to PLACE`: where',
    '- `--size N` (`5`): how many',
    '- `--from PLACE …`: whence; in any order',
    '- `--dry`: changes nothing',
    '- is harmless',
    '- needs DATABASE_URL',
    '- exit code 1: found something',
  ]);
});

test('docs/commands.md is what `tollbook commands reference` prints', async () => {
  const { code, stdout } = await tollbook(['commands', 'reference']);
  expect(code).toBe(0);
  expect(await readFile('docs/commands.md', 'utf8')).toBe(stdout);
});

test('the arguments of a command are read as its help says', () => {
  const args = ['one', '--from', 'a', '--from', 'b', '--dry'];
  expect(readOptions(described, args)).toEqual({
    values: { size: '5', from: ['a', 'b'], dry: true },
    positionals: ['one'],
  });
  expect(() => readOptions(described, ['--size', '1', '--size', '2'])).toThrow('--size is given twice');
  expect(() => readOptions(described, ['--form', 'a'])).toThrow("Unknown option '--form'");
  expect(() => readOptions({ ...described, forms: ['--to PLACE'] }, ['one'])).toThrow(
    "Unexpected argument 'one'",
  );
});

test('no way to call a command names an option that the command does not have', () => {
  const strange = Object.entries(commands).flatMap(([name, { forms = [], options = {} }]) =>
    [...forms.join(' ').matchAll(/--([a-z-]+)/g)].flatMap(([, option = '']) =>
      Object.hasOwn(options, option) ? [] : [`${name} --${option}`],
    ),
  );
  expect(strange).toEqual([]);
});
