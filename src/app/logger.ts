import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { type Logger, pino } from 'pino';
import type { Config } from '../base/config/config.ts';
import { createOutages, type Outages } from '../base/runtime/outages.ts';
import { gatherLines } from '../base/runtime/gather-lines.ts';
import { isDatabaseLoss } from '../ledger/store/database.ts';
import { LaneClosedError } from '../ledger/store/flusher.ts';
import { LaneFullError } from '../ledger/store/lane.ts';
import { programVersion } from './version.ts';

const outagesByLogger = new WeakMap<Logger, Outages>();

/**
 * A logger of structured lines, on standard output or into a file. Headers, bodies and configurations are never logged. Each line has
 * the program's version and a name of the process. Of errors of an unreachable database the first is logged, as a sentence.
 */
export function createLogger(level: Config['logLevel'], file?: string): Logger {
  const outages = createOutages(
    (error) => isDatabaseLoss(error) || error instanceof LaneFullError || error instanceof LaneClosedError,
  );
  const logger = pino(
    {
      level,
      base: { version: programVersion(), instance: randomBytes(4).toString('hex') },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: plainError },
      // the names that log_level has in the configuration
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        logMethod(given, method) {
          const error = errorIn(given[0]);
          const heard = error && outages.hear(error);
          if (heard === 'known') return;
          if (error && heard === 'begins')
            return method.apply(this, [{ cause: causeOf(error), first_seen: given[1] }, failureMessage]);
          method.apply(this, given);
        },
      },
    },
    gatherLines(pino.destination(file === undefined ? 1 : ownFile(file))),
  );
  outagesByLogger.set(logger, outages);
  return logger;
}

/** The file, which its owner alone reads: lines name callers and payments. */
function ownFile(file: string): string {
  writeFileSync(file, '', { flag: 'a', mode: 0o600 });
  chmodSync(file, 0o600);
  return file;
}

const failureMessage = 'the database cannot be used: further lines about it are left out until it can';

/** To be called whenever the database has taken a heartbeat: logs the end of an outage. */
export function noteHeartbeat(logger: Logger): void {
  const ended = outagesByLogger.get(logger)?.worked();
  if (ended) logger.info(ended, 'the database can be used again');
}

function errorIn(fields: unknown): Error | undefined {
  const found = typeof fields === 'object' && fields !== null && 'err' in fields ? fields.err : undefined;
  return found instanceof Error ? found : undefined;
}

/** An error of several attempts to connect has no message. */
function causeOf(error: Error): string {
  const [first] = error instanceof AggregateError ? (error.errors as readonly unknown[]) : [];
  const { message } = first instanceof Error ? first : error;
  const code = 'code' in error ? ` (${String(error.code)})` : '';
  return message.slice(0, 300) + (message.includes(code.slice(2, -1)) ? '' : code);
}

/** The fields of an error that are logged. Drivers attach objects with statements and settings: those are left out. */
function plainError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack } = error;
  const cause = error.cause === undefined ? {} : { cause: plainError(error.cause) };
  return { type: name, message, ...('code' in error ? { code: String(error.code) } : {}), stack, ...cause };
}
