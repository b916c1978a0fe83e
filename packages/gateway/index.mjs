import { complaint } from './node-version.mjs';

if (complaint) throw new Error(complaint);

export const { ConfigError, createLogger, loadConfig, migrate, startGateway } =
  await import('./dist/main.js');
