import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { noteSigner, originPattern } from '../../../domain/log/checkpoint.ts';
import { ArgumentError } from '../../arguments.ts';
import { fail, say } from '../../terminal.ts';

export async function run(args: readonly string[]): Promise<number> {
  const { positionals } = parseArgs({ args: [...args], allowPositionals: true, options: {} });
  const [origin] = positionals;
  if (origin === undefined || !originPattern.test(origin))
    throw new ArgumentError('name the log: tollbook log key ORIGIN, such as jobs.example/log');
  const seed = randomBytes(32);
  say(seed.toString('base64'));
  fail(`The line above is the secret seed: store it only where key_env or key_file names it.
Auditors get this public key: ${noteSigner(origin, seed).verifierKey}`);
  return 0;
}
