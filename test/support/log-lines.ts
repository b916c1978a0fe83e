import { type Logger, pino } from 'pino';

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A logger and its lines so far. Level 30 is info, 40 is warn. */
export function logLines(): { readonly lines: readonly LogLine[]; readonly logger: Logger } {
  const lines: LogLine[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as LogLine);
  return { lines, logger: pino({ level: 'info' }, { write }) };
}
