import { readDatabaseUrl } from '../../../base/config/database-url.ts';
import { processEnvironment } from '../../../base/config/environment.ts';
import { migrate, rehearseMigration } from '../../../ledger/store/migrations.ts';
import { readOptions } from '../../../base/terminal/arguments.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { appCommands } from '../descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(appCommands.migrate, args);
  const url = await readDatabaseUrl(processEnvironment());
  if (values['dry-run']) await rehearse(url);
  else {
    const { ran, notice } = await migrate(url);
    if (notice !== undefined) fail(notice);
    say(ran.length === 0 ? upToDate : `Ran ${ran.join(', ')}.`);
  }
  return exitCodes.done;
}

const upToDate = 'The database is up to date.';

async function rehearse(url: string): Promise<void> {
  const { ran, notTried, changes, ms } = await rehearseMigration(url);
  if (ran.length === 0 && notTried.length === 0) return say(upToDate);
  if (ran.length > 0)
    say(`Ran ${ran.join(', ')} in ${(ms / 1000).toFixed(1)} s, and rolled it back: nothing was changed.`);
  for (const change of changes) say(`  ${change}`);
  if (notTried.length > 0) say(`Not tried, since it runs outside a transaction: ${notTried.join(', ')}.`);
}
