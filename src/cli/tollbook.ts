#!/usr/bin/env node
import { commands } from './commands.ts';
import { ArgumentError } from './arguments.ts';
import { type ExitCode, exitCodes, exitLines, type OwnExits } from './exit-codes.ts';
import { fail, outlastReaders, say } from './terminal.ts';
import { ConfigError } from '../config/mistakes.ts';
import { BooksError } from '../domain/bookkeeping/books-error.ts';

outlastReaders();
// a fault that no command has caught: Node would end with the code of a finding
process.on('uncaughtException', (error) => {
  fail(error.stack ?? error.message);
  process.exit(exitCodes.notDone);
});

const allExits: OwnExits = {
  finding: 'a break that nobody has explained, or tampering',
  explained: 'every break is explained',
  wrongConfiguration: 'the configuration has mistakes: from serve, pricing and config check',
};
const readerSuffices = 'DATABASE_URL may be of a user with the reader role alone (docs/operations/roles.md).';

/** A command's name is one argument, or two such as `config check`. The other arguments belong to the command. */
const [first = '', second = '', ...rest] = process.argv.slice(2);
const named = (name: string) => (Object.hasOwn(commands, name) ? commands[name] : undefined);
const twoWords = named(`${first} ${second}`);
const command = twoWords ?? named(first);
const fullName = twoWords ? `${first} ${second}` : first;

const usage = [
  'Usage: tollbook COMMAND [OPTIONS]',
  '',
  ...Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(20)}${summary}`),
  '',
  'DATABASE_URL, or the file that DATABASE_URL_FILE names, has the address of the database.',
  '`tollbook COMMAND --help` describes one command.',
  '',
  ...exitLines(allExits),
].join('\n');

if (!command) {
  const isHelp = ['', '--help', '-h', 'help'].includes(first);
  if (isHelp) say(usage);
  else fail(noCommand());
  process.exitCode = isHelp ? exitCodes.done : exitCodes.notDone;
} else {
  const args = twoWords ? rest : process.argv.slice(3);
  if (args.includes('--help'))
    say(
      [`tollbook ${fullName}: ${command.summary}`, '', command.usage, '', ...exitLines(command.exits)]
        .concat(command.isReading ? ['', readerSuffices] : [])
        .join('\n'),
    );
  else {
    try {
      const { run } = await command.load();
      // an ignored filter would look like a filter without results
      if (run.length === 0 && args.length > 0)
        throw new ArgumentError(`tollbook ${fullName} takes no arguments, not ${args[0]}`);
      process.exitCode = await run(args);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      fail(isParseError(error) ? `${message}. \`tollbook ${fullName} --help\` lists its options` : message);
      process.exitCode = exitCodeOf(error, command.exits);
    }
  }
}

/** Names the commands whose names begin with the same argument. */
function noCommand(): string {
  const near = Object.keys(commands).filter((name) => name.startsWith(`${first} `));
  const given = near.length > 0 && /^[a-z]/.test(second) ? `${first} ${second}` : first;
  const hint = near.length > 0 ? `there is: ${near.join(', ')}` : '`tollbook --help` lists them all';
  return `tollbook has no command ${given}; ${hint}`;
}

function exitCodeOf(error: unknown, exits: OwnExits = {}): ExitCode {
  if (error instanceof BooksError) return exitCodes.finding;
  const isServing = error instanceof ConfigError && exits.wrongConfiguration !== undefined;
  return isServing ? exitCodes.wrongConfiguration : exitCodes.notDone;
}

/** What parseArgs of node:util throws for unknown options. */
function isParseError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_');
}
