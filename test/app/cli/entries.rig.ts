import { expect, test } from 'vitest';
import { commands } from '../../../src/app/cli/commands.ts';
import { startTollbook } from '../../support/program.ts';

test.each(Object.keys(commands))(
  '%s loads in its own process, refuses an option that it does not have, and ends',
  async (name) => {
    const ended = await startTollbook([...name.split(' '), '--no-such-option']).ended;
    expect(ended).toMatchObject({ code: 2, signal: null, stdout: '' });
    // or how the command is called, if it takes the option for the id that it needs
    expect(ended.stderr).toMatch(new RegExp(`--no-such-option|tollbook ${name} `));
  },
);
