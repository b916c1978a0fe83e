#!/usr/bin/env node
import { commands } from './commands.ts';
import { ArgumentError, exitCodes } from './arguments.ts';
import { fail, outlastReaders, say } from './terminal.ts';
import { ConfigError } from '../config/mistakes.ts';

outlastReaders();

const readerSuffices = 'DATABASE_URL may be of a user with the reader role alone (docs/operations/roles.md).';

/** A command's name is one argument, or two such as `config check`. The other arguments belong to the command. */
const [first = '', second = '', ...rest] = process.argv.slice(2);
const named = (name: string) => (Object.hasOwn(commands, name) ? commands[name] : undefined);
const twoWords = named(`${first} ${second}`);
const command = twoWords ?? named(first);

const usage = [
  'Usage: tollbook COMMAND [OPTIONS]',
  '',
  ...Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(20)}${summary}`),
  '',
  'DATABASE_URL, or the file that DATABASE_URL_FILE names, has the address of the database.',
  '`tollbook COMMAND --help` describes one command.',
].join('\n');

if (!command) {
  const isHelp = ['', '--help', '-h', 'help'].includes(first);
  if (isHelp) say(usage);
  else fail(noCommand());
  process.exitCode = isHelp ? exitCodes.done : exitCodes.wrongArguments;
} else {
  const args = twoWords ? rest : process.argv.slice(3);
  if (args.includes('--help'))
    say(
      [`tollbook ${twoWords ? `${first} ${second}` : first}: ${command.summary}`, '', command.usage]
        .concat(command.isReading ? ['', readerSuffices] : [])
        .join('\n'),
    );
  else {
    try {
      const { run } = await command.load();
      // an ignored filter would look like a filter without results
      if (run.length === 0 && args.length > 0)
        throw new ArgumentError(
          `tollbook ${twoWords ? `${first} ${second}` : first} takes no arguments, not ${args[0]}`,
        );
      process.exitCode = await run(args);
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error));
      process.exitCode = exitCodeOf(error);
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

function exitCodeOf(error: unknown): number {
  if (error instanceof ConfigError) return exitCodes.wrongConfig;
  return isArgumentError(error) ? exitCodes.wrongArguments : exitCodes.refused;
}

/** Also what parseArgs of node:util throws for unknown options. */
function isArgumentError(error: unknown): boolean {
  if (error instanceof ArgumentError) return true;
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_');
}
