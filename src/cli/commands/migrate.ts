import { readDatabaseUrl } from '../../config/database-url.ts';
import { processEnvironment } from '../../config/environment.ts';
import { migrate } from '../../store/migrations.ts';
import { fail, say } from '../terminal.ts';

export async function run(): Promise<number> {
  const ran = await migrate(await readDatabaseUrl(processEnvironment()), { onNotice: fail });
  say(ran.length === 0 ? 'The database is up to date.' : `Ran ${ran.join(', ')}.`);
  return 0;
}
