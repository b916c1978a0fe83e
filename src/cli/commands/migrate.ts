import { readDatabaseUrl } from '../../config/database-url.ts';
import { processEnvironment } from '../../config/environment.ts';
import { migrate } from '../../store/migrations.ts';
import { fail, say } from '../terminal.ts';
import { type ExitCode, exitCodes } from '../exit-codes.ts';

export async function run(): Promise<ExitCode> {
  const ran = await migrate(await readDatabaseUrl(processEnvironment()), { onNotice: fail });
  say(ran.length === 0 ? 'The database is up to date.' : `Ran ${ran.join(', ')}.`);
  return exitCodes.done;
}
