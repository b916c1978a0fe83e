import { type Command, commands } from './commands.ts';
import { ArgumentError } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes, exitLines, type OwnExits } from '../../base/terminal/exit-codes.ts';
import { helpOf } from '../../base/terminal/command.ts';
import { fail, notDone, say } from '../../base/terminal/terminal.ts';
import { ConfigError } from '../../base/config/mistakes.ts';
import { programVersion } from '../version.ts';
import { BooksError } from '../../audit/rules/bookkeeping/books-error.ts';

const allExits: OwnExits = {
  finding: 'a break that no operator has explained, or tampering',
  explained: 'every break is explained',
  wrongConfiguration: 'the configuration has mistakes: from serve, pricing and config check',
};

const longestName = Math.max(...Object.keys(commands).map(({ length }) => length));

const usage = [
  'Usage: tollbook COMMAND [OPTIONS]',
  '',
  ...Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(longestName)}  ${summary}`),
  '',
  'DATABASE_URL, or the file that DATABASE_URL_FILE names, has the address of the database.',
  '`tollbook COMMAND --help` describes one command, and `tollbook --version` says which version this is.',
  '',
  ...exitLines(allExits),
].join('\n');

/**
 * Runs the command that the arguments name, and says its result, or why it failed, on the terminal. A command's name is one argument, or
 * two such as `config check`; the other arguments belong to the command.
 */
export async function runCommand(args: readonly string[]): Promise<ExitCode> {
  const [first = '', second = ''] = args;
  const twoWords = named(`${first} ${second}`);
  const command = twoWords ?? named(first);
  if (!command) return answerNoCommand(first, second);
  const fullName = twoWords ? `${first} ${second}` : first;
  const own = args.slice(twoWords ? 2 : 1);
  if (own.includes('--help')) {
    say(helpOf(fullName, command));
    return exitCodes.done;
  }
  try {
    const run = await command.load();
    // an ignored filter would look like a filter without results
    if (run.length === 0 && own.length > 0)
      throw new ArgumentError(`tollbook ${fullName} takes no arguments, not ${own[0]}`);
    return await run(own);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    fail(isParseError(error) ? `${message}. \`tollbook ${fullName} --help\` lists its options` : message);
    return exitCodeOf(error, command.exits);
  }
}

function named(name: string): Command | undefined {
  return Object.hasOwn(commands, name) ? commands[name] : undefined;
}

function answerNoCommand(first: string, second: string): ExitCode {
  if (['', '--help', '-h', 'help'].includes(first)) {
    say(usage);
    return exitCodes.done;
  }
  if (['--version', '-v', 'version'].includes(first)) {
    say(programVersion());
    return exitCodes.done;
  }
  return notDone(noCommand(first, second));
}

/** Names the commands whose names begin with the same argument. */
function noCommand(first: string, second: string): string {
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
