import { expect, test } from 'vitest';
import { commands } from '../../../src/app/cli/commands.ts';
import { readOptions } from '../../../src/base/terminal/arguments.ts';
import { helpOf, text, texts, textOr, flag } from '../../../src/base/terminal/command.ts';

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
