import { randomBytes } from 'node:crypto';
import { signerOf } from '../../use-cases/log/configured-log.ts';
import { noteSigner, originPattern } from '../../../base/values/log/checkpoint.ts';
import { signerIn } from '../../../base/values/log/log-generation.ts';
import { readLogGeneration } from '../../store/log.ts';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { readConfig } from '../../terminal/chains.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { auditCommands } from '../../terminal/descriptions.ts';

/** Makes a key; with a configuration, prints the public keys of its log, the newest generation last. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(auditCommands['log key'], args);
  const [origin] = positionals;
  if (values.config !== undefined && origin !== undefined)
    throw new ArgumentError('name a new log by ORIGIN, or the one of a configuration by --config');
  if (values.config !== undefined) return printKeys(values.config);
  if (origin === undefined || !originPattern.test(origin))
    throw new ArgumentError('name the log: tollbook log key ORIGIN, such as jobs.example/log');
  const seed = randomBytes(32);
  say(seed.toString('base64'));
  fail(`The line above is the secret seed: store it only where key of [log] says that it is.
Auditors get this public key: ${noteSigner(origin, [seed]).verifierKeys[0]}`);
  return exitCodes.done;
}

async function printKeys(file: string): Promise<ExitCode> {
  const { log } = await readConfig(file);
  if (!log) throw new ArgumentError(`${file} has no [log]: its ledger is not sealed`);
  const { generation } = await withLedger(({ pool }) => readLogGeneration(pool));
  for (let number = 1; number <= generation; number++)
    for (const key of signerIn(signerOf(log), number).verifierKeys) say(key);
  return exitCodes.done;
}
