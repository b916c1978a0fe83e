import path from 'node:path';
import { readDescription } from '../../../../devnet/description.ts';
import { fromBase32, totpCode } from '../../../../accounts/rules/totp.ts';
import { readOptions } from '../../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../../base/terminal/exit-codes.ts';
import { say } from '../../../../base/terminal/terminal.ts';
import { appCommands } from '../../descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(appCommands['operators code'], args);
  const { demo_operator: operator } = await readDescription(path.resolve(values.dir));
  say(totpCode(fromBase32(operator.totp_secret) ?? Buffer.alloc(0), Date.now()));
  return exitCodes.done;
}
