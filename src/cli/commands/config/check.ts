import { processEnvironment } from '../../../config/environment.ts';
import { loadConfig } from '../../../config/load.ts';
import { ArgumentError } from '../../arguments.ts';
import { fail, say } from '../../terminal.ts';

export async function run([file]: readonly string[]): Promise<number> {
  if (file === undefined) throw new ArgumentError('name the file: tollbook config check FILE');
  const { config, warnings } = await loadConfig(file, processEnvironment());
  for (const warning of warnings) fail(`warning: ${warning}`);
  const jobs = config.jobs?.jobPrices.size ?? 0;
  say(
    `${file} is valid: ${jobs} priced ${jobs === 1 ? 'job' : 'jobs'}, ${config.jobs?.acceptedTokens.length ?? 0} accepted tokens.`,
  );
  return 0;
}
