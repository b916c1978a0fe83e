import { type Logger, pino } from 'pino';
import { configuredSecrets } from '../support/whole-gateway.ts';

/** A logger that keeps only what must not be logged: errors, and lines with a secret. */
export function createLogCheck(): { readonly logger: Logger; readonly faults: string[] } {
  const faults: string[] = [];
  const secrets = Object.values(configuredSecrets);
  const write = (line: string): void => {
    // the level is the first field of a line
    if (/^\{"level":[56]0,/.test(line) || secrets.some((secret) => line.includes(secret)))
      faults.push(line.slice(0, 2_000));
  };
  return { logger: pino({ level: 'info' }, { write }), faults };
}
