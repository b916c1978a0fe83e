import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { noteSigner, originPattern } from '../../../domain/log/checkpoint.ts';
import { fail, say } from '../../terminal.ts';

export async function run(args: readonly string[]): Promise<number> {
  const { positionals } = parseArgs({ args: [...args], allowPositionals: true, options: {} });
  const [origin] = positionals;
  if (origin === undefined || !originPattern.test(origin)) {
    fail('of which log? tollbook log key ORIGIN, such as jobs.example/log');
    return 64;
  }
  const seed = randomBytes(32);
  say(seed.toString('base64'));
  fail(`The line above is the secret seed: it belongs into key_env or key_file, and nowhere else.
Auditors get this public key: ${noteSigner(origin, seed).verifierKey}`);
  return 0;
}
