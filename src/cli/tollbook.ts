#!/usr/bin/env node
import { commands } from './commands.ts';
import { ArgumentError } from './network-pairs.ts';
import { fail, say } from './terminal.ts';
import { ConfigError } from '../config/mistakes.ts';

/** The command's name: one word or two, `config check`. What follows is the command's own. */
const [first = '', second = '', ...rest] = process.argv.slice(2);
const named = (name: string) => (Object.hasOwn(commands, name) ? commands[name] : undefined);
const twoWords = named(`${first} ${second}`);
const command = twoWords ?? named(first);

const usage = [
  'Usage: tollbook COMMAND [OPTIONS]',
  '',
  ...Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(20)}${summary}`),
  '',
  'DATABASE_URL names the ledger. `tollbook COMMAND --help` tells more about one command.',
].join('\n');

if (!command) {
  const asked = ['', '--help', '-h', 'help'].includes(first);
  if (asked) say(usage);
  else fail(noCommand());
  process.exitCode = asked ? 0 : 64;
} else {
  const args = twoWords ? rest : process.argv.slice(3);
  if (args.includes('--help'))
    say(`tollbook ${twoWords ? `${first} ${second}` : first}: ${command.summary}\n\n${command.usage}`);
  else {
    try {
      const { run } = await command.load();
      // a filter that nobody heeds would be taken for one that found nothing
      if (run.length === 0 && args.length > 0)
        throw new ArgumentError(
          `tollbook ${twoWords ? `${first} ${second}` : first} takes no arguments, not ${args[0]}`,
        );
      process.exitCode = await run(args);
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error));
      process.exitCode = error instanceof ConfigError ? 78 : isUsageError(error) ? 64 : 1;
    }
  }
}

/** Beside the commands that begin with the same word. */
function noCommand(): string {
  const near = Object.keys(commands).filter((name) => name.startsWith(`${first} `));
  const given = near.length > 0 && /^[a-z]/.test(second) ? `${first} ${second}` : first;
  const hint = near.length > 0 ? `there is: ${near.join(', ')}` : '`tollbook --help` lists them all';
  return `tollbook has no command ${given}; ${hint}`;
}

/** Arguments that make no sense, among them what node:util's parseArgs throws for options that nobody knows. */
function isUsageError(error: unknown): boolean {
  if (error instanceof ArgumentError) return true;
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_');
}
