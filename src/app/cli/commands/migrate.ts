import { readDatabaseUrl } from '../../../base/config/database-url.ts';
import { processEnvironment } from '../../../base/config/environment.ts';
import { migrate } from '../../../ledger/store/migrations.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

export async function run(): Promise<ExitCode> {
  const ran = await migrate(await readDatabaseUrl(processEnvironment()), { onNotice: fail });
  say(ran.length === 0 ? 'The database is up to date.' : `Ran ${ran.join(', ')}.`);
  return exitCodes.done;
}
