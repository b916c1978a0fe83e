import { readOptions } from '../../../base/terminal/arguments.ts';
import { type CommandDescription, commandsPage } from '../../../base/terminal/command.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';

/** Prints every command, as docs/commands.md has them. */
export async function reference(
  commands: Readonly<Record<string, CommandDescription>>,
  args: readonly string[],
): Promise<ExitCode> {
  readOptions(appCommands['commands reference'], args);
  say(commandsPage(commands));
  return exitCodes.done;
}
