import { parseArgs } from 'node:util';
import { readDatabaseUrl } from '../config/database-url.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { createLogger, startGateway } from '../main.ts';
import { fail, untilSignal } from './terminal.ts';

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: { config: { type: 'string' } } });
  if (values.config === undefined) {
    fail('which configuration? tollbook serve --config FILE');
    return 64;
  }
  const signal = untilSignal();
  const env = processEnvironment();
  const { config, warnings } = await loadConfig(values.config, env);
  const logger = createLogger(config.logLevel);
  for (const warning of warnings) logger.warn(warning);
  const gateway = await startGateway({ config, databaseUrl: readDatabaseUrl(env), logger });
  logger.info({ url: gateway.url }, 'listening');
  logger.info({ signal: await signal }, 'stopping');
  await gateway.stop();
  return 0;
}
