import path from 'node:path';
import { readDescription } from '../../../devnet/description.ts';
import { fromBase32, totpCode } from '../../../domain/identity/totp.ts';
import { readOptions } from '../../arguments.ts';
import { type ExitCode, exitCodes } from '../../exit-codes.ts';
import { say } from '../../terminal.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions({
    args: [...args],
    options: { dir: { type: 'string', default: '.tollbook' } },
  });
  const { demo_operator: operator } = await readDescription(path.resolve(values.dir));
  say(totpCode(fromBase32(operator.totp_secret) ?? Buffer.alloc(0), Date.now()));
  return exitCodes.done;
}
